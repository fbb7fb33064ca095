"""What breaks a rule within a body is refused at its place, before any calibration is known."""

import json
from typing import Any

import numpy as np
import pytest
from request_formats import in_bytes, in_json
from running_service import encoded, npy, npz

from service.child.requests.limits import BodyLimits
from service.child.requests.media_types import BODIES, JSON, NPY, NPZ
from service.child.requests.open_inference import divide, read_tensors
from service.errors import InvalidInput
from service.runner.messages.open_inference import parse_infer_request, requested_outputs

LIMITS = BodyLimits(max_bytes=2**20, max_rows=1000)
ROWS = np.zeros((3, 64), np.float32)


def tensor(**changes: Any) -> bytes:
    return json.dumps({"calibration": "c", "inputs": encoded(ROWS) | changes}).encode()


def check(error: InvalidInput, expected: str) -> None:
    """Compare the one violation with a location, and a word of its message behind a colon."""
    location, _, word = expected.partition(": ")
    (violation,) = error.violations
    assert violation.location == location
    assert word in violation.message


@pytest.mark.parametrize(
    ("kind", "body", "location"),
    [
        (JSON, b'{"calibration": "c", "name": "c"}', "body"),
        (JSON, b'{"calibration": "c", "inputs": {}}', "inputs"),
        (JSON, tensor(b64=""), "inputs.b64"),
        (JSON, tensor(b64="AAA"), "inputs: base64"),
        (JSON, tensor(dtype="<f4"), "inputs: dtype"),
        (JSON, tensor(b64="", shape=[3, 0]), "inputs: at least one value"),
        (NPY, npy(ROWS)[:-1], "body"),
        (NPY, npy(np.array([["a"]])), "body"),
        (NPZ, npz(), "body"),
        (NPZ, npz(inputs=np.array([{}], object)), "body.inputs"),
    ],
    ids=[
        *("an unknown field", "no inputs", "too few bytes", "no base64", "a dtype of numpy's"),
        *("a shape of nothing", "cut off", "text", "no array", "a pickled member"),
    ],
)
def test_arrays(kind, body, location) -> None:
    with pytest.raises(InvalidInput) as caught:
        BODIES[kind](body, LIMITS)
    check(caught.value, location)


INPUT, BYTES = in_json("x", ROWS), in_bytes("x", ROWS)


def of(*tensors: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"inputs": list(tensors), **fields}


@pytest.mark.parametrize(
    ("request_", "raw", "location"),
    [
        ({}, b"", "body: inputs"),
        (of(INPUT, parameters={"a": [1]}), b"", "body: parameters"),
        (of(INPUT, id=4), b"", "body: id"),
        (of({key: value for key, value in INPUT.items() if key != "shape"}), b"", "body: shape"),
        (of(INPUT | {"data": ROWS.reshape(3, 8, 8).tolist()}), b"", "inputs.x.data"),
        (of(INPUT | {"datatype": "FP31"}), b"", "inputs.x.datatype"),
        (of(INPUT | {"datatype": "INT8", "data": [128] * 192}), b"", "inputs.x.data[0]"),
        (of(INPUT | BYTES), ROWS.tobytes(), "inputs.x"),
        (of(BYTES), ROWS.tobytes()[:-4], "inputs.x"),
        (of(BYTES | {"shape": [3, 63]}), ROWS.tobytes(), "inputs.x.parameters.binary_data_size"),
        (of(INPUT, outputs=[{"name": "class"}] * 2), b"", "outputs.class"),
        (
            of(INPUT, outputs=[{"name": "class", "parameters": {"classification": 2}}]),
            b"",
            "outputs.class.parameters.classification",
        ),
    ],
    ids=[
        *(
            "no inputs",
            "nested parameters",
            "an id that is no text",
            "no shape",
            "nested otherwise",
            "an unknown type",
        ),
        *("above its type", "data and bytes", "missing bytes", "not the size of the shape"),
        *("an output twice", "classification"),
    ],
)
def test_tensors(request_, raw, location) -> None:
    head = json.dumps(request_).encode()
    text, rest = divide(head + raw, str(len(head)))

    def read() -> None:
        parsed = parse_infer_request(text)
        requested_outputs(parsed)
        read_tensors(parsed.inputs, rest, max_rows=10)

    with pytest.raises(InvalidInput) as caught:
        read()
    check(caught.value, location)
