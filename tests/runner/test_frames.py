"""Frames between parent and child, and the sockets that they go through."""

import contextlib
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from service.runner import messages
from service.runner.messages.channel import Channel, ChannelClosed
from service.runner.messages.convert import Positive
from service.runner.messages.frames import (
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
)

PREFIX = f"{messages.__name__}."
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


def sent(fields=None, tensors=None):
    return b"".join(encode(Frame(Kind.LOAD, 1, fields or {}, tensors or {})))


@given(frames)
def test_a_frame_arrives_as_it_was_sent(frame):
    received = decode(b"".join(encode(frame)))
    assert list(received.tensors) == list(frame.tensors)
    for name, array in frame.tensors.items():
        np.testing.assert_array_equal(received.tensors[name], array, strict=True)
    for field in ("kind", "sequence", "status", "budget_ms", "fields"):
        assert getattr(received, field) == getattr(frame, field)


@given(frames, st.data())
def test_changed_frames_are_read_or_refused(frame, data):
    raw = bytearray(b"".join(encode(frame)))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    for candidate in (bytes(raw), bytes(raw[:cut]), bytes(raw) + b"x"):
        with contextlib.suppress(FrameError):
            decode(candidate)


def packed(fields=b'{"fields": {}, "tensors": []}', tensors=b"", **changes):
    header = {"magic": MAGIC, "kind": Kind.PREDICT, "status": 0, "sequence": 1, "budget_ms": 0}
    header |= {"fields_bytes": len(fields), "tensor_bytes": len(tensors)} | changes
    return HEADER.pack(*header.values()) + fields + tensors


def with_arrays(*entries):
    return packed(json.dumps({"fields": {}, "tensors": entries}).encode(), bytes(128))


HEADERS = [{"magic": b"HTTP"}, {"kind": 99}, {"status": 7}]
HEADERS += [{"fields_bytes": MAX_FIELDS_BYTES + 1}, {"tensor_bytes": MAX_TENSOR_BYTES + 1}]
# More than there is, no numbers, too many axes, too large, large beside an empty axis.
SHAPES = [[400], [-1], [True], [1.0], [1] * 17, [2**31] * 3, [0, *[2**31] * 3]]
TABLES = [[["a", "float32", []]] * 2, [["a", "object", [1]]], [["a", "float32"]]]
TABLES += [[["a", "uint8", [1]]]]
JSON = [b"[" * 100_000, b"\xff\xfe", b"", b'{"fields": {"a": NaN}, "tensors": []}']
JSON += [b'{"fields": {"a": 1' + b"0" * 5000 + b'}, "tensors": []}']
JSON += [b'{"fields": {}, "tensors": [], "more": 1}']
REFUSED = [packed(**changes) for changes in HEADERS]
REFUSED += [with_arrays(["a", "float32", shape]) for shape in SHAPES]
REFUSED += [*(with_arrays(*table) for table in TABLES), *map(packed, JSON)]


@pytest.mark.parametrize("data", REFUSED, ids=range(len(REFUSED)))
def test_invalid_frames_are_refused(data):
    assert decode(packed()).kind is Kind.PREDICT
    assert decode(with_arrays(["a", "float32", [32]])).tensors["a"].shape == (32,)
    with pytest.raises(FrameError):
        decode(data)


UNSENT = {
    "not a number": ({"a": float("nan")}, {}),
    "an object": ({"a": object()}, {}),
    "long": ({"a": "x" * (MAX_FIELDS_BYTES + 1)}, {}),
    "text": ({}, {"a": np.array(["x"])}),
    "many arrays": ({}, {str(i): np.zeros(0) for i in range(1025)}),
    "large": ({}, {"a": np.broadcast_to(np.uint8(0), 2**31 + 1)}),
}


@pytest.mark.parametrize("content", UNSENT.values(), ids=UNSENT)
def test_what_the_reader_would_refuse_is_not_sent(content):
    with pytest.raises(FrameError):
        sent(*content)


@pytest.fixture
def ends():
    left, right = socket.socketpair()
    with left, right:
        yield Channel(left), Channel(right), right


@pytest.mark.parametrize("size", [3, 5_000, 500_000])
def test_frames_of_any_size_arrive_in_order_and_stay(ends, size):
    left, right, _ = ends
    tensors = [{"a": np.full(size, number, np.float32)} for number in range(3)]
    with ThreadPoolExecutor(1) as thread:
        frames_sent = [encode(Frame(Kind.LOAD, 1, {}, one)) for one in tensors]
        sending = thread.submit(lambda: [left.send(buffers) for buffers in frames_sent])
        received = [right.receive(deadline=time.monotonic() + 30).tensors for _ in tensors]
        sending.result()
    np.testing.assert_equal(received, tensors)
    assert all(one["a"].flags.aligned for one in received)


@pytest.mark.parametrize("n_bytes", [0, 7, 33, 60])
@pytest.mark.parametrize("is_closed", [True, False])
def test_receiving_ends_at_the_deadline_or_with_the_socket(ends, n_bytes, is_closed):
    left, _, theirs = ends
    theirs.sendall(sent({"a": "b" * 99})[:n_bytes])
    if is_closed:
        theirs.close()
    with pytest.raises(ChannelClosed if is_closed else TimeoutError):
        left.receive(deadline=time.monotonic() + (30 if is_closed else 0.05))


def test_sending_ends_at_the_deadline_or_with_the_socket(ends):
    left, _, theirs = ends
    with pytest.raises(TimeoutError):
        left.send([sent(tensors={"a": np.zeros(10**6)})], deadline=0.05 + time.monotonic())
    theirs.close()
    with pytest.raises(ChannelClosed):
        left.send([sent()])


def test_more_than_the_reader_takes_is_refused_before_it_is_read(ends):
    left, right, _ = ends
    left.send([sent(tensors={"a": np.zeros(100)})])
    with pytest.raises(FrameError):
        right.receive(max_tensor_bytes=99)


def test_a_closed_socket_is_noticed_beside_unread_bytes(ends):
    left, _, theirs = ends
    theirs.sendall(b"unread")
    assert left.is_open()
    theirs.close()
    assert not left.is_open()
    left.close()
    assert not left.is_open()


def corrupts_memory(hint):
    """Tell of a type with a bounded number or text beside a tuple of fixed length: msgspec 0.22."""
    parts = get_args(hint)
    bounded = [get_args(part)[0] for part in parts if get_origin(part) is Annotated]
    has_tuple = any(get_origin(part) is tuple for part in parts)
    has_bounded = not {int, float, str}.isdisjoint(bounded)
    return (has_bounded and has_tuple) or any(map(corrupts_memory, parts))


def test_no_message_has_a_type_that_corrupts_memory():
    modules = [import_module(found.name) for found in iter_modules(messages.__path__, PREFIX)]
    kinds = {kind for module in modules for kind in vars(module).values() if is_message(kind)}
    assert len(kinds) > 30
    hints = [get_type_hints(kind, include_extras=True) for kind in kinds]
    assert not [hint for of_kind in hints for hint in of_kind.values() if corrupts_memory(hint)]
    assert corrupts_memory(dict[str, Positive | tuple[Positive, Positive] | None])


def is_message(kind):
    return isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, msgspec.Struct))
