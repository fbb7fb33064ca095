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
from service.errors import InvalidInput, TooLarge

MEBIBYTE = 2**20
LIMITS = BodyLimits(max_bytes=32 * MEBIBYTE, max_rows=10_000)
WIDE = ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8")
DTYPES = ["?", "i1", "u1", *(order + kind for order in "<>" for kind in WIDE)]
RNG = np.random.default_rng(0)


def read(kind: str, body: bytes):
    return BODIES[kind](body, LIMITS)


@pytest.mark.parametrize("shape", [(3,), (2, 1), (1, 4, 3), (2, 3, 1, 2)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_read_to_the_bit_with_nan(dtype, shape):
    size = np.dtype(dtype).itemsize * int(np.prod(shape))
    array = np.frombuffer(RNG.bytes(size), dtype).reshape(shape)
    if dtype == "?":
        array = RNG.random(shape) > 0.5
    bodies = {
        NPY: npy(np.asfortranarray(array)),
        NPZ: npz(compressed=True, inputs=np.asfortranarray(array), uncertainty_own=array),
        JSON: json.dumps({"calibration": "c", "inputs": {"inputs": encoded(array)}}).encode(),
    }
    for kind, body in [*bodies.items(), (NPZ, npz(inputs=array))]:
        request = read(kind, body)
        for values in [*request.arrays.values(), *request.supplied.values()]:
            assert (values.dtype, values.shape) == (array.dtype.newbyteorder("="), shape)
            assert values.astype(array.dtype).tobytes() == array.tobytes()
        assert request.arrays.keys() == {"inputs"}


@pytest.mark.parametrize("shift", [0, 1])
def test_an_aligned_array_is_a_view_of_its_body(shift):
    rows = np.arange(6, dtype=np.float32)
    content = np.frombuffer(npy(rows), np.uint8)
    body = np.zeros(1 + len(content), np.uint8)[shift:][: len(content)]
    body[:] = content
    found = BODIES[NPY](body.data, LIMITS).arrays["inputs"]
    assert found.flags.aligned
    assert np.shares_memory(found, body) == (shift == 0)
    np.testing.assert_array_equal(found, rows, strict=True)


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


@pytest.mark.parametrize("kind", GOOD)
def test_a_damaged_body_is_read_or_refused(kind):
    body = GOOD[kind]
    for size in range(len(body)):
        with pytest.raises(InvalidInput):
            read(kind, body[:size])
    for _ in range(200):
        at, removed, added = RNG.integers([len(body), 4, 4])
        try:
            read(kind, body[:at] + RNG.bytes(added) + body[at + removed :])
        except InvalidInput as error:
            assert len(error.violations) == 1  # noqa: PT017 - it may also be read
            assert error.message.isprintable()  # noqa: PT017 - as above


def lists(row: bytes, count: int) -> bytes:
    return b'{"calibration": "c", "inputs": [' + b",".join([row] * count) + b"]}"


LARGE = {
    "rows": (NPY, npy_claim("<f8", (2**40, 2**20))),
    "bomb": (NPZ, npz(compressed=True, x=np.zeros((9_000, 8_000), np.uint8))),
    "rows in a bomb": (NPZ, npz(compressed=True, x=np.zeros((20_000_000, 1), np.uint8))),
    "deep, spaced": (JSON, lists(b" [ [\n0 ] ]", 1_000_000)),
    "numbers": (JSON, lists(b"0", 4_000_000)),
}


@pytest.mark.process
@pytest.mark.parametrize(("kind", "body"), LARGE.values(), ids=LARGE)
def test_large_bodies_are_refused_before_memory_is_taken(kind, body):
    def refuse() -> None:
        with pytest.raises(InvalidInput):
            read(kind, body)

    assert peak_of(refuse) < 3 * len(body) + 2 * MEBIBYTE


@pytest.mark.parametrize("row", [b"[0]", b"[[0],[1]]", b"[[[0]],[[1]]]", b" [ [0]\t, [1] ]", b"7"])
def test_rows_are_counted(row):
    assert len(read(JSON, lists(row, 10_000)).arrays["inputs"]) == 10_000
    with pytest.raises(TooLarge, match="10000 rows, got 10001"):
        read(JSON, lists(row, 10_001))
