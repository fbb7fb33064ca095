"""Hostile JSON at POST /predict, at the Open Inference Protocol and as a configuration.

The rules of rows and tensors are in tests/child/requests, those of keys in tests/calibrations.
"""

import json
from typing import Any

import numpy as np
import pytest
import running_service
from hostile_case import Attacker, HostileCase
from keyed_service import logits_of

from service.calibrations.config import CalibrationConfig, parse_config
from service.child.onnx.model_inputs import ModelInputs
from service.child.requests.body_decoder import OIP as OPEN_INFERENCE
from service.child.requests.body_decoder import BodyDecoder
from service.child.requests.limits import BodyLimits
from service.child.requests.media_types import JSON
from service.graph.description import TensorSpec
from service.runner.messages.predict_batches import SentBodies

MALFORMED, ABSENT = (400, "malformed-request"), (404, "not-found")
INVALID, TOO_LARGE = (422, "invalid-input"), (413, "too-large")
OK = (200, "")
# In its place stands the id of a calibration, which is not known before it is sent.
MINE, OUTPUTS = "@mine", "@outputs"
ROW = ",".join(["1.0"] * 63)
MEBIBYTE = 2**20


def nested(depth: int) -> str:
    return "[" * depth + "1" + "]" * depth


def inputs(text: str) -> str:
    return f'{{"calibration":"{MINE}","inputs":{text}}}'


def with_value(text: str) -> str:
    """Return a body of one row whose last value is this text."""
    return inputs(f"[[{ROW},{text}]]")


def with_logit(text: str) -> str:
    return f'{{"calibration":"{OUTPUTS}","logits":[[1,2,{text}]]}}'


def named(text: str) -> str:
    return f'{{"calibration":{text},"inputs":[[1]]}}'


def more(text: str) -> str:
    """Return a good body with more fields."""
    return f"{with_value('1')[:-1]},{text}}}"


def encoded(**changed: Any) -> str:
    """Return an array as its own bytes, with some of what is said of it changed."""
    tensor = running_service.encoded(np.ones((1, 64), np.float32)) | changed
    return inputs(json.dumps(tensor))


NAN = running_service.encoded(np.full((1, 64), np.nan, np.float32))
LAST = "inputs[0][63]"
# The body, or what builds a long one; the status and code; and what the problem names.
PREDICT: dict[str, tuple[Any, tuple[int, str], str]] = {
    "nan": (with_value("NaN"), MALFORMED, ""),
    "1e999": (with_value("1e999"), INVALID, LAST),
    "true": (with_value("true"), INVALID, LAST),
    "string": (with_value('"0.1"'), INVALID, LAST),
    "null": (with_value("null"), INVALID, LAST),
    "integer_of_100000_digits": (with_value("9" * 100_000), INVALID, LAST),
    "exponent_of_100000_digits": (with_value("1e" + "9" * 100_000), INVALID, LAST),
    "fraction_of_a_million_digits": (with_value("0." + "1" * 10**6), OK, ""),
    "logit_nan": (with_logit("NaN"), MALFORMED, ""),
    "logit_1e39": (with_logit("1e39"), INVALID, "logits[0][2]"),
    "ragged": (inputs(f"[[{ROW},1],[{ROW}]]"), INVALID, "row 1"),
    "empty_batch": (inputs("[]"), INVALID, "inputs"),
    "of_one_number": (inputs("1"), INVALID, "inputs"),
    "no_inputs": (inputs("{}"), INVALID, "inputs"),
    "10_million_columns": (lambda: inputs("[[" + "1," * 10**7 + "1]]"), TOO_LARGE, "10000 rows"),
    "10_million_rows": (lambda: inputs("[" + "[]," * 10**7 + "[]]"), TOO_LARGE, ""),
    "17_axes": (inputs(nested(17)), INVALID, ""),
    "100000_nested": (inputs(nested(100_000)), MALFORMED, ""),
    "a_million_opened": (lambda: "[" * 10**6, INVALID, ""),
    "nested_where_nobody_looks": ('{"what":' + nested(100_000) + "}", INVALID, ""),
    "2000_inputs": (inputs(json.dumps({f"n{k}": [[1]] for k in range(2000)})), TOO_LARGE, ""),
    "a_name_of_a_megabyte": (inputs('{"' + "n" * 10**6 + '":[[1]]}'), INVALID, ""),
    "unknown_field": (more('"__class__":"os"'), INVALID, ""),
    "both_kinds": (more('"logits":[[1]]'), INVALID, ""),
    # What stands last is what is meant, as in most readers.
    "inputs_twice": (more(f'"inputs":[[{ROW},2]]'), OK, ""),
    "calibration_named_twice": (more(f'"calibration":"{OUTPUTS}"'), INVALID, ""),
    "calibration_of_a_megabyte": (named('"' + "c" * 10**6 + '"'), ABSENT, ""),
    "calibration_with_a_nul": (named(r'"a\u0000b"'), ABSENT, ""),
    "calibration_of_a_lone_surrogate": (named(r'"\ud800"'), MALFORMED, ""),
    "utf_16": (with_value("1").encode("utf-16"), MALFORMED, ""),
    "bad_utf_8": (b'{"calibration":"\xff","inputs":[[1]]}', MALFORMED, ""),
    "base64_that_is_none": (encoded(b64="!!!!"), INVALID, ""),
    "base64_that_is_too_short": (encoded(b64=""), INVALID, "inputs.b64"),
    "base64_of_nothing": (encoded(b64="", shape=[3, 0]), INVALID, "at least one value"),
    "base64_of_objects": (encoded(dtype="object"), INVALID, "dtype"),
    "base64_of_a_type_in_numpys_words": (encoded(dtype="<f4"), INVALID, "dtype"),
    "base64_of_2_to_the_60_rows": (encoded(shape=[2**60, 64]), TOO_LARGE, ""),
    "base64_of_2_to_the_200_columns": (encoded(shape=[1, 2**200]), INVALID, ""),
    "base64_of_a_negative_length": (encoded(shape=[-1, -64]), INVALID, "inputs.shape"),
    "base64_of_1000_axes": (encoded(shape=[1] * 1000), INVALID, ""),
    "base64_of_nan": (encoded(**NAN), INVALID, "inputs[0][0]"),
    "base64_with_a_path": (encoded(path="/etc/passwd"), INVALID, ""),
}


def built(body: Any) -> bytes:
    content = body() if callable(body) else body
    return content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")


DIGITS = BodyDecoder(ModelInputs([TensorSpec("inputs", "float32", (None, 64))]))
LIMITS = BodyLimits(max_bytes=32 * MEBIBYTE, max_rows=10_000)


def decode(content: bytes, kind: str = JSON, length: str | None = None) -> None:
    """Read a body as the child of the digits model does."""
    sent = SentBodies(1, kind, len(content), MINE, header_length=length)
    DIGITS.decode(sent, content, LIMITS)


def predict(attacker: Attacker, content: bytes) -> Any:
    whole = content.replace(MINE.encode(), attacker.calibration.encode())
    return attacker.predict(whole.replace(OUTPUTS.encode(), attacker.outputs.encode()))


def predict_case(name: str, body: Any, expected: tuple[int, str], says: str) -> HostileCase:
    # Which calibration is meant, the service finds out; that of outputs has no child.
    is_read = expected != ABSENT and OUTPUTS not in str(body)
    read = (lambda content, _: decode(content)) if is_read else None
    return HostileCase(name, predict, *expected, says=says, build=lambda: built(body), read=read)


BODIES = [predict_case(name, *row) for name, row in PREDICT.items()]
# The connection refuses it, before anybody reads it.
BODIES += [HostileCase("33_mib", predict, *TOO_LARGE, build=lambda: bytes(33 * MEBIBYTE))]


@pytest.mark.parametrize("case", BODIES, ids=str)
def test_bodies_of_predict(hostile, case: HostileCase) -> None:
    hostile(case)


BYTES = np.ones((1, 64), "<f4").tobytes()
LENGTH = "Inference-Header-Content-Length"


def tensors(*changes: dict[str, Any]) -> bytes:
    """Return a request of good tensors with these changes; None leaves a key out."""
    whole = {"name": "inputs", "datatype": "FP32", "shape": [1, 64], "data": [1.0] * 64}
    changed = [{k: v for k, v in (whole | one).items() if v is not None} for one in changes]
    return json.dumps({"inputs": changed}).encode()


def with_fields(**fields: Any) -> bytes:
    """Return a request of a good tensor with these fields beside it."""
    return json.dumps(json.loads(tensors({})) | fields).encode()


def with_data(text: str) -> bytes:
    return tensors({"data": ["@"] + [1.0] * 63}).replace(b'"@"', text.encode())


def binary(
    content: bytes = BYTES, *, size: object = None, length: str | None = None, **changed: Any
) -> tuple[bytes, dict[str, str]]:
    """Return a tensor behind its JSON, and the header with the length of the JSON."""
    parameters = {"binary_data_size": len(content) if size is None else size}
    head = tensors({"data": None, "parameters": parameters} | changed)
    return head + content, {LENGTH: str(len(head)) if length is None else length}


OF_CLASSES = {"name": "class", "parameters": {"classification": 2}}
# The request, with headers if there are any; the status, and what the error names.
OIP: dict[str, tuple[Any, int, str]] = {
    "nothing": (b"", 400, ""),
    "no_inputs": (b"{}", 400, "inputs"),
    "no_tensors": (b'{"inputs":[]}', 400, "inputs"),
    "nested_parameters": (with_fields(parameters={"a": [1]}), 400, "parameters"),
    "id_that_is_no_text": (with_fields(id=4), 400, "id"),
    "output_twice": (with_fields(outputs=[{"name": "class"}] * 2), 400, "outputs.class"),
    "output_of_classes": (with_fields(outputs=[OF_CLASSES]), 400, "parameters.classification"),
    "100000_nested": (b'{"inputs":' + b"[" * 100_000, 400, ""),
    "100000_nested_data": (with_data(nested(100_000)), 400, ""),
    "100000_nested_elsewhere": (f'{{"inputs":[],"x":{nested(100_000)}}}'.encode(), 400, ""),
    **{f"value_{text}": (with_data(text), 400, "") for text in ("NaN", "1e999", "true", '"1"')},
    "value_of_400_digits": (with_data("9" * 400), 400, ""),
    "ragged": (tensors({"data": [[1.0] * 60, [1.0] * 4]}), 400, ""),
    "tensor_twice": (tensors({}, {}), 400, "twice"),
    "10_million_columns": (
        lambda: with_data("1" + ",1" * 10**7).replace(b"[1, 64]", b"[1, 10000000]"),
        413,
        "",
    ),
    "unknown_datatype": (tensors({"datatype": "OBJECT"}), 400, "inputs.inputs.datatype"),
    "no_shape": (tensors({"shape": None}), 400, "shape"),
    "shape_of_2_to_the_60": (tensors({"shape": [2**60, 64]}), 413, ""),
    "shape_negative": (tensors({"shape": [-1, 64]}), 400, ""),
    "shape_of_1000_axes": (tensors({"shape": [1] * 999 + [64]}), 400, ""),
    "another_name": (tensors({"name": "\ud800"}), 400, ""),
    "name_of_a_megabyte": (tensors({"name": "n" * 10**6}), 400, ""),
    "shared_memory": (tensors({"parameters": {"shared_memory_region": "/x"}}), 400, "shared"),
    "size_too_small": (binary(size=8), 400, "inputs.inputs.parameters.binary_data_size"),
    "data_and_bytes": (binary(data=[1.0] * 64), 400, "inputs.inputs"),
    "size_of_2_to_the_62": (binary(size=2**62), 400, ""),
    "size_of_true": (binary(size=True), 400, ""),
    "binary_shape_of_2_to_the_60": (binary(shape=[2**60, 64]), 413, ""),
    "binary_shape_negative": (binary(shape=[-1, -64]), 400, ""),
    "of_nan": (binary(np.full((1, 64), np.nan, "<f4").tobytes()), 400, ""),
    "of_booleans_of_2": (binary(bytes([2]) * 64, datatype="BOOL"), 400, ""),
    "header_length_beyond_the_body": (binary(length="99999999"), 400, LENGTH),
    "header_length_of_text": (binary(length="1e3"), 400, LENGTH),
    "header_length_in_the_midst": (binary(length="20"), 400, ""),
}


def infer_case(name: str, request: Any, status: int, says: str) -> HostileCase:
    body, headers = request if isinstance(request, tuple) else (request, {})
    return HostileCase(
        name,
        lambda attacker, content: attacker.infer(content, headers),
        status,
        says=says,
        build=lambda: built(body),
        read=lambda content, _: decode(content, OPEN_INFERENCE, headers.get(LENGTH)),
    )


@pytest.mark.parametrize("case", [infer_case(n, *row) for n, row in OIP.items()], ids=str)
def test_requests_of_the_open_inference_protocol(hostile, case: HostileCase) -> None:
    hostile(case)


CONFIG = (422, "invalid-config")
# The configuration, the status and code, and what the problem names.
CONFIGS: dict[str, tuple[Any, tuple[int, str], str]] = {
    "nan": ('{"interval":{"level":NaN}}', CONFIG, "config"),
    "infinity": ('{"prior_strength":Infinity}', CONFIG, "config"),
    "lone_surrogate": (r'{"name":"\ud800"}', CONFIG, "config"),
    "bad_utf_8": (b'{"name":"\xff"}', INVALID, "config"),
    "9_mebibytes": (lambda: " " * (9 * MEBIBYTE), TOO_LARGE, "config"),
    "field_of_200_kilobytes": ({"k" * 200_000: 1}, CONFIG, "config"),
    "name_of_lines": ({"name": "a\r\nSet-Cookie: x=1"}, CONFIG, "config.name"),
    "bins_of_400_digits": ('{"bins":' + "9" * 400 + "}", CONFIG, "config"),
    "seed_of_2_to_the_64": ({"seed": 2**64}, CONFIG, "config.seed"),
    "top_k_of_30000": ({"top_k": list(range(1, 30_000))}, CONFIG, "config.top_k"),
}


def config_case(name: str, config: Any, expected: tuple[int, str], says: str) -> HostileCase:
    text = json.dumps(config) if isinstance(config, dict) else config
    options: dict[str, Any] = {"says": says, "build": lambda: built(text)}
    if expected == CONFIG:  # the limits of the part are those of the form
        options["read"] = lambda content, _: parse_config(content.decode(), CalibrationConfig)
    return HostileCase(name, lambda a, c: a.calibrate(logits_of(), config=c), *expected, **options)


@pytest.mark.parametrize("case", [config_case(n, *row) for n, row in CONFIGS.items()], ids=str)
def test_configurations(hostile, case: HostileCase) -> None:
    hostile(case)
