"""Bodies of arrays: what numpy wrote is what is read, and nothing harms or takes memory."""

import json

import numpy as np
import pytest
from dataset_files import npy_claim
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from own_process import peak_of
from running_service import encoded, npy, npz

from service.child.requests.limits import BodyLimits
from service.child.requests.media_types import BODIES, JSON, NPY, NPZ
from service.child.requests.predict_request import PredictRequest
from service.errors import InvalidInput, TooLarge

MEBIBYTE = 2**20
LIMITS = BodyLimits(max_bytes=32 * MEBIBYTE, max_rows=10_000)
WIDE = ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8")
DTYPES = ["?", "i1", "u1", *(order + kind for order in "<>" for kind in WIDE)]
tensors = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays(np.dtype(dtype), array_shapes(max_dims=4, max_side=4))
)


def read(kind: str, body: bytes) -> PredictRequest:
    return BODIES[kind](body, LIMITS)


def same(found: np.ndarray, sent: np.ndarray) -> None:
    assert found.dtype == sent.dtype.newbyteorder("=")
    assert found.dtype.isnative
    assert found.shape == sent.shape
    assert found.astype(sent.dtype).tobytes() == sent.tobytes(), "to the bit, NaN included"


@given(tensors, st.sampled_from("CF"))
def test_an_npy_array_is_read_to_the_bit(array, order):
    found = read(NPY, npy(np.asarray(array, order=order)))
    same(found.arrays["inputs"], array)


@pytest.mark.parametrize("compressed", [False, True])
@given(first=tensors, second=tensors)
def test_members_of_an_npz_are_read_to_the_bit(first, second, *, compressed):
    body = npz(
        compressed=compressed, **{"a/b:0": np.asfortranarray(first), "uncertainty_own": second}
    )
    found = read(NPZ, body)
    assert found.arrays.keys() == {"a/b:0"}
    same(found.arrays["a/b:0"], first)
    assert found.supplied.keys() == {"own"}
    same(found.supplied["own"], second)


@given(tensors)
def test_base64_is_read_to_the_bit(array):
    body = {"calibration": "digits", "inputs": {"x": encoded(array)}}
    same(read(JSON, json.dumps(body).encode()).arrays["x"], array)


@given(
    arrays(np.float64, array_shapes(max_dims=4, max_side=4), elements=st.floats(-1e30, 1e30)),
    st.sampled_from([None, 1, "\t"]),
)
def test_lists_are_read_to_the_bit(array, indent):
    body = json.dumps({"calibration": "c", "logits": array.tolist()}, indent=indent).encode()
    np.testing.assert_array_equal(read(JSON, body).arrays["logits"], array, strict=True)


GOOD = {
    JSON: json.dumps(
        {
            "calibration": "c",
            "inputs": {"x": encoded(np.eye(3, dtype="f4")), "y": [[1.5, 2], [3, 4]]},
            "supplied": {"own": [1, 2, 3]},
        }
    ).encode(),
    NPY: npy(np.arange(12.0).reshape(4, 3)),
    NPZ: npz(compressed=True, x=np.arange(12.0).reshape(4, 3), uncertainty_own=np.arange(4.0)),
}


@given(st.data(), st.sampled_from(sorted(GOOD)))
def test_a_damaged_body_is_read_or_refused(data, kind):
    body = bytearray(GOOD[kind])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        change = data.draw(st.sampled_from(["change", "drop", "insert"]))
        byte = data.draw(st.integers(0, 255))
        body[at : at + (change != "insert")] = b"" if change == "drop" else bytes([byte])
    try:
        read(kind, bytes(body))
    except InvalidInput as error:
        assert len(error.violations) == 1  # noqa: PT017 - it may also be read
        assert error.message.isprintable()  # noqa: PT017 - as above


@pytest.mark.parametrize("kind", sorted(GOOD))
def test_every_truncation_is_refused(kind):
    for size in range(len(GOOD[kind])):
        with pytest.raises(InvalidInput):
            read(kind, GOOD[kind][:size])


def lists(row: bytes, count: int) -> bytes:
    rows = b",".join([row] * count)
    return b'{"calibration": "c", "inputs": [' + rows + b"]}"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (NPY, npy_claim("<f8", (2**40, 2**20))),
        (NPY, npy_claim("<f8", (10, 2**60))),
        (NPZ, npz(compressed=True, x=np.zeros((9_000, 8_000), np.uint8))),
        (NPZ, npz(compressed=True, x=np.zeros((20_000_000, 1), np.uint8))),
        (JSON, lists(b"[0]", 2_000_000)),
        (JSON, lists(b"[[[0]]]", 1_000_000)),
        (JSON, lists(b" [ [\n0 ] ]", 1_000_000)),
        (JSON, lists(b"0", 4_000_000)),
    ],
    ids=["rows", "columns", "bomb", "rows in a bomb", "flat", "deep", "spaced", "numbers"],
)
def test_large_bodies_are_refused_before_memory_is_taken(kind, body):
    def refuse() -> None:
        with pytest.raises(InvalidInput):
            read(kind, body)

    assert peak_of(refuse) < 3 * len(body) + 2 * MEBIBYTE


@pytest.mark.parametrize("row", [b"[0]", b"[[0],[1]]", b"[[[0]],[[1]]]", b" [ [0]\t, [1] ]", b"7"])
def test_rows_are_counted(row):
    assert len(read(JSON, lists(row, 10_000)).arrays["inputs"]) == 10_000
    with pytest.raises(TooLarge, match="at most 10000 rows, got 10001"):
        read(JSON, lists(row, 10_001))
