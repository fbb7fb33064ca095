import contextlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

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
    max_leaves=10,
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
def test_what_is_encoded_is_decoded(frame):
    data = b"".join(encode(frame))
    got = decode(data)
    assert (got.kind, got.sequence, got.status) == (frame.kind, frame.sequence, frame.status)
    assert got.budget_ms == frame.budget_ms
    assert got.fields == frame.fields
    assert list(got.tensors) == list(frame.tensors)
    for name, array in frame.tensors.items():
        assert got.tensors[name].dtype == array.dtype
        assert got.tensors[name].shape == array.shape
        assert got.tensors[name].tobytes() == array.tobytes()


def test_arrays_are_sent_in_little_endian_and_row_order():
    given_arrays = {
        "big": np.array([1, 2], dtype=">i4"),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "strided": np.arange(10, dtype=np.int16)[::3],
        "zeros": np.broadcast_to(np.float32(3), (2, 2)),
    }
    got = decode(b"".join(encode(Frame(Kind.RECORD, 1, {}, given_arrays)))).tensors
    for name, array in given_arrays.items():
        np.testing.assert_array_equal(got[name], array)
        assert got[name].flags.c_contiguous


def test_arrays_begin_at_aligned_offsets():
    odd = {"a": np.zeros(3, dtype=np.uint8), "b": np.ones(1)}
    frame = decode(b"".join(encode(Frame(Kind.RECORD, 1, {}, odd))))
    a, b = frame.tensors["a"], frame.tensors["b"]
    start = b.__array_interface__["data"][0] - a.__array_interface__["data"][0]
    assert start == ALIGNMENT


def test_large_arrays_are_not_copied():
    array = np.zeros(10**6)
    assert any(
        np.shares_memory(array, np.frombuffer(buffer, np.uint8))
        for buffer in encode(Frame(Kind.RECORD, 1, {}, {"a": array}))
    )


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(data):
    with pytest.raises(FrameError):
        decode(data)


@given(frames, st.data())
def test_changed_frames_are_read_or_refused(frame, data):
    raw = bytearray(b"".join(encode(frame)))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    for candidate in (bytes(raw), bytes(raw[:cut]), bytes(raw) + b"x"):
        with contextlib.suppress(FrameError):
            decode(candidate)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_a_right_header_before_anything_is_read_or_refused(fields, tensors):
    with pytest.raises(FrameError):
        decode(packed(fields, tensors))


@given(st.recursive(json_values, lambda inner: st.lists(inner, max_size=3)), st.binary(max_size=99))
def test_any_table_of_arrays_is_read_or_refused(entries, tensors):
    fields = json.dumps({"fields": {}, "tensors": entries}).encode()
    with contextlib.suppress(FrameError):
        decode(packed(fields, tensors))


@pytest.mark.parametrize(
    "changes",
    [
        {"magic": b"HTTP"},
        {"kind": 0},
        {"kind": 99},
        {"status": 7},
        {"fields_bytes": MAX_FIELDS_BYTES + 1},
        {"tensor_bytes": MAX_TENSOR_BYTES + 1},
    ],
)
def test_headers_that_break_a_rule_are_refused(changes):
    with pytest.raises(FrameError):
        parse_header(packed(**changes)[: HEADER.size])


def test_a_reader_takes_no_more_than_it_expects():
    header = packed(tensor_bytes=1025)[: HEADER.size]
    assert parse_header(header, max_tensor_bytes=1025).tensor_bytes == 1025
    with pytest.raises(FrameError):
        parse_header(header, max_tensor_bytes=1024)


@pytest.mark.parametrize(
    "entries",
    [
        [["a", "float32", [4]]],  # more than there is
        [["a", "float32", []], ["a", "float32", []]],  # a name twice
        [["a", "float32", [-1]]],
        [["a", "float32", [True]]],
        [["a", "float32", [1.0]]],
        [["a", "object", [1]]],
        [["a", "float32"]],
        [["a", "float32", [1] * 17]],
        [["a", "float32", [2**31, 2**31, 2**31]]],
        [["a", "float32", [0, 2**31, 2**31, 2**31]]],
        [["a", "uint8", [1]]],  # less than there is
        "a",
    ],
)
def test_tables_that_lie_are_refused(entries):
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
def test_json_that_breaks_a_rule_is_refused(fields):
    with pytest.raises(FrameError):
        decode(packed(fields))


@pytest.mark.parametrize(
    "frame",
    [
        Frame(Kind.LOAD, 1, {"a": float("nan")}),
        Frame(Kind.LOAD, 1, {"a": object()}),
        Frame(Kind.LOAD, 1, {"a": "x" * (MAX_FIELDS_BYTES + 1)}),
        Frame(Kind.LOAD, 1, {}, {"a": np.array(["x"])}),
        Frame(Kind.LOAD, 1, {}, {"a": np.array([None])}),
        Frame(Kind.LOAD, 1, {}, {"a": np.zeros(1, dtype=np.complex128)}),
        Frame(Kind.LOAD, 1, {}, {str(i): np.zeros(0) for i in range(1025)}),
        Frame(Kind.LOAD, 1, {}, {"a": np.broadcast_to(np.uint8(0), 2**31 + 1)}),
    ],
)
def test_what_the_reader_would_refuse_is_not_sent(frame):
    with pytest.raises(FrameError):
        encode(frame)
