import socket
import threading
import time

import numpy as np
import pytest

from service.runner.messages.channel import Channel, ChannelClosed
from service.runner.messages.frames import Frame, FrameError, Kind, encode


@pytest.fixture
def ends():
    left, right = socket.socketpair()
    with left, right:
        yield Channel(left), Channel(right), right


def test_frames_larger_than_the_socket_s_buffer_arrive_whole(ends):
    left, right, _ = ends
    arrays = {f"a{i}": np.random.default_rng(i).normal(size=50_000 + i) for i in range(80)}
    sender = threading.Thread(target=lambda: left.send(encode(Frame(Kind.LOAD, 1, {}, arrays))))
    sender.start()
    got = right.receive(deadline=time.monotonic() + 30)
    sender.join()
    assert got.tensors.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(got.tensors[name], array)


def test_frames_come_in_order(ends):
    left, right, _ = ends
    for number in range(5):
        left.send(encode(Frame(Kind.LOAD, number)))
    assert [right.receive().sequence for _ in range(5)] == list(range(5))


@pytest.mark.parametrize("sent", [0, 7, 33, 60])
def test_an_end_inside_a_frame_is_an_end(ends, sent):
    left, _, theirs = ends
    theirs.sendall(b"".join(encode(Frame(Kind.LOAD, 1, {"a": "b" * 99})))[:sent])
    theirs.close()
    with pytest.raises(ChannelClosed):
        left.receive()


@pytest.mark.parametrize("sent", [0, 7, 60])
def test_a_frame_that_does_not_come_in_time_is_not_waited_for(ends, sent):
    left, _, theirs = ends
    theirs.sendall(b"".join(encode(Frame(Kind.LOAD, 1, {"a": "b" * 99})))[:sent])
    with pytest.raises(TimeoutError):
        left.receive(deadline=time.monotonic() + 0.2)


def test_a_reader_that_does_not_read_is_not_waited_for(ends):
    left, _, _ = ends
    with pytest.raises(TimeoutError):
        left.send(
            encode(Frame(Kind.LOAD, 1, {}, {"a": np.zeros(10**7)})), deadline=0.2 + time.monotonic()
        )


def test_nobody_there_is_an_error_when_sending(ends):
    left, _, theirs = ends
    theirs.close()
    with pytest.raises(ChannelClosed):
        left.send(encode(Frame(Kind.LOAD, 1)))


def test_more_than_the_reader_takes_is_refused_before_it_is_read(ends):
    left, right, _ = ends
    sender = threading.Thread(
        target=lambda: left.send(encode(Frame(Kind.LOAD, 1, {}, {"a": np.zeros(100)})))
    )
    sender.start()
    with pytest.raises(FrameError):
        right.receive(max_tensor_bytes=99)
    sender.join()


def test_an_end_knows_at_once_that_the_other_is_gone():
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    theirs.sendall(b"unread")
    assert channel.is_open()
    theirs.close()
    assert not channel.is_open()
    channel.close()
    assert not channel.is_open()


@pytest.mark.parametrize("size", [3, 5_000, 50_000])
def test_what_was_received_stays_when_more_comes(ends, size):
    left, right, _ = ends
    arrays = [np.full(size, number, np.float32) for number in range(3)]
    sender = threading.Thread(
        target=lambda: [left.send(encode(Frame(Kind.LOAD, 1, {}, {"a": one}))) for one in arrays]
    )
    sender.start()
    got = [right.receive().tensors["a"] for _ in arrays]
    sender.join()
    for one, array in zip(got, arrays, strict=True):
        np.testing.assert_array_equal(one, array)
        assert one.flags.aligned
