"""Tensors of requests against Triton's client, which writes them in its own way."""

import json

import msgspec
import numpy as np
import pytest
import tritonclient.http as triton
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from tritonclient.utils import np_to_triton_dtype

from service.child.requests.open_inference import divide, read_tensors
from service.errors import InvalidInput
from service.runner.messages.open_inference import InputTensor, parse_infer_request

DTYPES = ["bool", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64))]
DTYPES += ["float16", "float32", "float64"]
SHAPES = array_shapes(max_dims=4, max_side=4)


def sent(named: dict[str, np.ndarray], *, binary: dict[str, bool]) -> dict[str, np.ndarray]:
    """Return what is read of what Triton's client makes of arrays."""
    tensors = []
    for name, array in named.items():
        tensor = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        tensors.append(tensor.set_data_from_numpy(array, binary_data=binary[name]))
    body, length = triton.InferenceServerClient.generate_request_body(tensors)
    text, raw = divide(body, None if length is None else str(length))
    return read_tensors(parse_infer_request(text).inputs, raw, max_rows=10)


@given(st.data())
def test_tensors_are_read_as_the_client_sends_them(data):
    named, binary = {}, {}
    for name in data.draw(st.lists(st.text(min_size=1), min_size=1, max_size=3, unique=True)):
        dtype = data.draw(st.sampled_from(DTYPES))
        elements = {"allow_nan": False, "allow_infinity": False} if dtype[0] == "f" else {}
        named[name] = data.draw(arrays(dtype, SHAPES, elements=elements or None))
        binary[name] = dtype == "float16" or data.draw(st.booleans())
        if not binary[name] and dtype.endswith("int64"):
            named[name] //= 2**11  # JSON's numbers are exact up to 2**53
    found = sent(named, binary=binary)

    assert list(found) == list(named)
    for name, array in named.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)


@given(arrays(np.uint16, SHAPES, elements=st.integers(0, 0x7F7F)))
def test_brain_floats(halves):
    name = {"name": "x", "datatype": "BF16", "shape": list(halves.shape)}
    tensor = InputTensor(**name, parameters={"binary_data_size": halves.nbytes})

    tensor_read = read_tensors([tensor], memoryview(halves.tobytes()), max_rows=10)["x"]

    # The upper half of a float32.
    expected = (halves.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(tensor_read, expected, strict=True)


OTHER_JSON = [
    *(("INT64", [2**53 + 2]), ("UINT64", [2**53 + 2]), ("UINT8", [-1]), ("BOOL", [1])),
    *(("BOOL", ["true"]), ("BOOL", [None]), ("FP32", [True]), ("BF16", [1]), ("FP32", 1)),
    *(("FP32", [[1], []]), ("BOOL", [[True], []]), ("FP32", [[[1]]])),
    ("FP32", {"b64": "AAAAAA=="}),
]


@pytest.mark.parametrize(("datatype", "data"), OTHER_JSON)
def test_json_of_another_datatype_is_refused(datatype, data):
    text = json.dumps(data).encode()
    tensor = InputTensor("x", [text.count(b",") + 1, 1], datatype, data=msgspec.Raw(text))

    with pytest.raises(InvalidInput) as caught:
        read_tensors([tensor], memoryview(b""), max_rows=10)

    assert caught.value.violations[0].location.startswith("inputs.x")
