"""Frames between parent and child, and the sockets that they go through."""

import contextlib
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from service.runner.messages.channel import Channel, ChannelClosed
from service.runner.messages.frames import (
    ALIGNMENT,
    DTYPES,
    HEADER,
    MAGIC,
    MAX_FIELDS_BYTES,
    MAX_TENSOR_BYTES,
    Frame,
    FrameError,
    Kind,
    Status,
    decode,
    encode,
    parse_header,
)

arrays = st.sampled_from(sorted(DTYPES)).flatmap(
    lambda name: npst.arrays(
        np.dtype(name), npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
    )
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=6,
)
frames = st.builds(
    Frame,
    kind=st.sampled_from(Kind),
    sequence=st.integers(0, 2**64 - 1),
    fields=st.dictionaries(st.text(), json_values, max_size=4),
    tensors=st.dictionaries(st.text(), arrays, max_size=4),
    status=st.sampled_from(Status),
    budget_ms=st.integers(0, 2**32 - 1),
)


def sent(frame):
    return b"".join(encode(frame))


def packed(fields=b"{}", tensors=b"", **changes):
    values = {
        "magic": MAGIC,
        "kind": Kind.PREDICT,
        "status": 0,
        "sequence": 1,
        "budget_ms": 0,
        "fields_bytes": len(fields),
        "tensor_bytes": len(tensors),
    } | changes
    return HEADER.pack(*values.values()) + fields + tensors


@given(frames)
def test_a_frame_arrives_as_it_was_sent(frame):
    got = decode(sent(frame))
    assert (got.kind, got.sequence, got.status) == (frame.kind, frame.sequence, frame.status)
    assert got.budget_ms == frame.budget_ms
    assert got.fields == frame.fields
    assert list(got.tensors) == list(frame.tensors)
    for name, array in frame.tensors.items():
        np.testing.assert_array_equal(got.tensors[name], array, strict=True)


def test_arrays_of_any_layout_arrive_contiguous_and_aligned():
    given_arrays = {
        "odd": np.zeros(3, dtype=np.uint8),
        "big": np.array([1, 2], dtype=">i4"),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "strided": np.arange(10, dtype=np.int16)[::3],
        "zeros": np.broadcast_to(np.float32(3), (2, 2)),
    }
    got = decode(sent(Frame(Kind.RECORD, 1, {}, given_arrays))).tensors
    start = got["odd"].__array_interface__["data"][0]
    for name, array in given_arrays.items():
        np.testing.assert_array_equal(got[name], array)
        assert got[name].flags.c_contiguous
        assert (got[name].__array_interface__["data"][0] - start) % ALIGNMENT == 0


def test_large_arrays_are_not_copied():
    array = np.zeros(10**6)
    assert any(
        np.shares_memory(array, np.frombuffer(buffer, np.uint8))
        for buffer in encode(Frame(Kind.RECORD, 1, {}, {"a": array}))
    )


@given(frames, st.data())
def test_changed_frames_are_read_or_refused(frame, data):
    raw = bytearray(sent(frame))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    for candidate in (bytes(raw), bytes(raw[:cut]), bytes(raw) + b"x"):
        with contextlib.suppress(FrameError):
            decode(candidate)


@given(st.recursive(json_values, lambda inner: st.lists(inner, max_size=3)), st.binary(max_size=99))
def test_any_table_of_arrays_is_read_or_refused(entries, tensors):
    fields = json.dumps({"fields": {}, "tensors": entries}).encode()
    with contextlib.suppress(FrameError):
        decode(packed(fields, tensors))


HEADERS = [{"magic": b"HTTP"}, {"kind": 99}, {"status": 7}]
HEADERS += [{"fields_bytes": MAX_FIELDS_BYTES + 1}, {"tensor_bytes": MAX_TENSOR_BYTES + 1}]


@pytest.mark.parametrize("changes", HEADERS)
def test_invalid_headers_are_refused(changes):
    with pytest.raises(FrameError):
        parse_header(packed(**changes)[: HEADER.size])


SHAPES = {"more than there is": [400], "negative": [-1], "not an integer": [True], "float": [1.0]}
SHAPES |= {"many dimensions": [1] * 17, "large": [2**31] * 3, "large but empty": [0, *[2**31] * 3]}
TABLES = {name: [["a", "float32", shape]] for name, shape in SHAPES.items()}
TABLES |= {"a name twice": [["a", "float32", []], ["a", "float32", []]]}
TABLES |= {"a type": [["a", "object", [1]]], "no shape": [["a", "float32"]], "no list": "a"}
TABLES |= {"less than there is": [["a", "uint8", [1]]]}


@pytest.mark.parametrize("entries", TABLES.values(), ids=TABLES)
def test_invalid_tables_of_arrays_are_refused(entries):
    fields = json.dumps({"fields": {}, "tensors": entries}).encode()
    with pytest.raises(FrameError):
        decode(packed(fields, bytes(128)))


@pytest.mark.parametrize(
    "fields",
    [
        b"[" * 100_000,
        b'{"fields": {"a": NaN}, "tensors": []}',
        b'{"fields": {"a": 1' + b"0" * 5000 + b'}, "tensors": []}',
        b'{"fields": [], "tensors": []}',
        b'{"fields": {}, "tensors": {}}',
        b'{"fields": {}, "tensors": [], "more": 1}',
        b"\xff\xfe",
        b"",
    ],
)
def test_invalid_json_is_refused(fields):
    with pytest.raises(FrameError):
        decode(packed(fields))


@pytest.mark.parametrize("value", [float("nan"), object(), "x" * (MAX_FIELDS_BYTES + 1)])
def test_fields_that_the_reader_would_refuse_are_not_sent(value):
    with pytest.raises(FrameError):
        encode(Frame(Kind.LOAD, 1, {"a": value}, {}))


UNSENT = [{"a": np.array(["x"])}, {"a": np.zeros(1, dtype=np.complex128)}]
UNSENT += [
    {str(i): np.zeros(0) for i in range(1025)},
    {"a": np.broadcast_to(np.uint8(0), 2**31 + 1)},
]


@pytest.mark.parametrize("tensors", UNSENT, ids=["text", "complex", "many", "large"])
def test_arrays_that_the_reader_would_refuse_are_not_sent(tensors):
    with pytest.raises(FrameError):
        encode(Frame(Kind.LOAD, 1, {}, tensors))


class TestChannel:
    @pytest.fixture
    def ends(self):
        left, right = socket.socketpair()
        with left, right:
            yield Channel(left), Channel(right), right

    @pytest.fixture
    def thread(self):
        with ThreadPoolExecutor(1) as executor:
            yield executor

    @pytest.mark.parametrize("size", [3, 5_000, 500_000])
    def test_frames_of_any_size_arrive_in_order_and_stay(self, ends, thread, size):
        left, right, _ = ends
        given_arrays = [np.full(size, number, np.float32) for number in range(3)]
        sending = thread.submit(
            lambda: [left.send(encode(Frame(Kind.LOAD, 1, {}, {"a": a}))) for a in given_arrays]
        )
        got = [right.receive(deadline=time.monotonic() + 30).tensors["a"] for _ in given_arrays]
        sending.result()
        np.testing.assert_array_equal(got, given_arrays)
        assert all(array.flags.aligned for array in got)

    @pytest.mark.parametrize("n_bytes", [0, 7, 33, 60])
    @pytest.mark.parametrize("is_closed", [True, False])
    def test_receiving_ends_at_the_deadline_or_with_the_socket(self, ends, n_bytes, is_closed):
        left, _, theirs = ends
        theirs.sendall(sent(Frame(Kind.LOAD, 1, {"a": "b" * 99}))[:n_bytes])
        if is_closed:
            theirs.close()
        with pytest.raises(ChannelClosed if is_closed else TimeoutError):
            left.receive(deadline=time.monotonic() + (30 if is_closed else 0.05))

    def test_sending_ends_at_the_deadline_or_with_the_socket(self, ends):
        left, _, theirs = ends
        large = Frame(Kind.LOAD, 1, {}, {"a": np.zeros(10**6)})
        with pytest.raises(TimeoutError):
            left.send(encode(large), deadline=0.05 + time.monotonic())
        theirs.close()
        with pytest.raises(ChannelClosed):
            left.send(encode(Frame(Kind.LOAD, 1)))

    def test_more_than_the_reader_takes_is_refused_before_it_is_read(self, ends):
        left, right, _ = ends
        left.send(encode(Frame(Kind.LOAD, 1, {}, {"a": np.zeros(100)})))
        with pytest.raises(FrameError):
            right.receive(max_tensor_bytes=99)

    def test_a_closed_socket_is_noticed_beside_unread_bytes(self, ends):
        left, _, theirs = ends
        theirs.sendall(b"unread")
        assert left.is_open()
        theirs.close()
        assert not left.is_open()
        left.close()
        assert not left.is_open()
