"""Files that are no ONNX models, hostile files, and weights that are said to lie in files.

The rules are in tests/graph/gate; here the service tells their names and leaves nothing behind.
"""

import io
import zipfile

import httpx
import pytest
from graph_models import external
from hostile_case import HostileCase
from hostile_models import ACCEPTED, N_CLASSES, delimited, good, model_case
from runner_models import N_FEATURES, weights

GRAPH, PRODUCER = 7, 2
SETTINGS = '{"session_options": {"intra_op_num_threads": "no"}}'


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model.onnx", good().SerializeToString())
    return file.getvalue()


def with_field(number, message):
    """Return a good file with one more field."""
    return lambda: good().SerializeToString() + delimited(number, message)


def changed(**fields):
    """Return a good model with other versions or remarks."""
    model = good()
    model.ir_version = fields.get("ir_version", 8)
    if "opset" in fields:
        model.opset_import.add(domain="", version=fields["opset"])
    for key, text in fields.get("remarks", {}).items():
        model.metadata_props.add(key=key, value=text)
    return lambda: model


def at(location="w.data"):
    """Return a linear model whose weights are said to lie there."""
    model = good()
    tensor = external("w", [N_FEATURES, N_CLASSES], None, location=location)
    model.graph.initializer[0].CopyFrom(tensor)
    return lambda: model


SENT = {"w.data": weights().tobytes()}
TOO_LARGE = {"status": httpx.codes.REQUEST_ENTITY_TOO_LARGE, "code": "too-large"}
CASES = [
    model_case("zip_of_a_model", zipped, "not-onnx", says="send the .onnx file"),
    model_case("ort_format", lambda: b"\x18\0\0\0ORTM" + bytes(999), "ort-format", says=".onnx"),
    model_case(
        "name_that_is_no_text",
        lambda: good().SerializeToString().replace(b"\x0a\x01x", b"\x0a\x01\xff"),
        "not-text",
    ),
    model_case(
        "above_the_size_limit", with_field(GRAPH, delimited(10, bytes(9 * 1024**2))), **TOO_LARGE
    ),
    # Written anew, the name stands where a file of ONNX Runtime's own format says what it is.
    model_case("a_producer_called_ortm", with_field(PRODUCER, b"ORTM"), **ACCEPTED),
    model_case("settings_in_the_file", changed(remarks={"ort_config": SETTINGS}), **ACCEPTED),
    model_case("opset_0", changed(opset=0), "opset-too-old", says="11"),
    model_case("opset_999", changed(opset=999), "opset-too-new", says="26"),
    model_case("ir_999", changed(ir_version=999), "ir-too-new", says="13"),
    model_case("weights_up_and_out", at("../../../../etc/passwd"), "external-path"),
    # That companions are read at all: otherwise no case above would tell anything.
    model_case("weights_as_they_should_be", at(), companions=SENT, **ACCEPTED),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_broken_rule_is_named(hostile, case: HostileCase) -> None:
    hostile(case)
