"""Errors of a configuration and an upload, worded for the caller."""

import io
import json

import httpx
import numpy as np
import pytest
from running_service import calibrate, digits

from service import errors
from service.calibrations.config import CalibrationConfig, parse_config
from service.errors import InvalidConfig

OUTPUTS = digits("calibration_logits.csv")
NAME = (
    "expected 1 to 100 of the characters A-Z, a-z, 0-9, '.', '_' and '-', the first a letter or a "
    "digit"
)


@pytest.mark.parametrize(
    ("text", "location", "message"),
    [
        ('{"bins": "10"}', "config.bins", 'expected "auto" or an integer from 1 to 10000'),
        ('{"bins": {"a": 1}}', "config.bins", 'expected "auto" or an integer from 1 to 10000'),
        ('{"top_k": [1, 0]}', "config.top_k[1]", "expected an integer of at least 1"),
        ('{"top_k": 5}', "config.top_k", "expected a list of 1 to 20 items"),
        ('{"serve": {"1": 3}}', "config.serve.1", "expected a string"),
        ('{"classes": ["a", 1]}', "config.classes[1]", "expected a string of 1 to 200 characters"),
        ('{"output": {"kind": 1}}', "config.output.kind", 'expected "logits" or "probabilities"'),
        ('{"lookup": "steps"}', "config.lookup", 'expected "step" or "interpolated"'),
        ('{"monotone": 1}', "config.monotone", "expected true or false"),
        ('{"interval": 3}', "config.interval", "expected an object"),
        ('{"folds": 1}', "config.folds", "expected an integer from 2 to 100"),
        ("[1]", "config", "expected an object"),
        ('{"name": "../../etc"}', "config.name", NAME),
        (
            '{"name": "123e4567-e89b-12d3-a456-426614174000"}',
            "config.name",
            "a name may not look like a calibration's id",
        ),
        ('{"top_k": [1, 1]}', "config", "top_k: the same event is named twice"),
        ('{"serve": {"3": "entropy"}}', "config", "serve: '3' is not an event of top_k"),
        ("[" * 9999, "config", "the lists are nested too deeply"),
        ('{"a\\u202eb": 1}', "config.a\\u202eb", "there is no such key"),
        (
            '{"interval": {"level": 0.9999999999999999}}',
            "config.interval.level",
            "expected a number above 0 and up to 0.999999999",
        ),
    ],
)
def test_config(text: str, location: str, message: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_config(text, CalibrationConfig)

    (found,) = caught.value.violations
    assert (found.location, found.message) == (location, message)


@pytest.mark.parametrize(
    ("text", "location", "names"),
    [
        ('{"measures": ["variance"]}', "config.measures[0]", "entropy"),
        ('{"interval": {"method": "x"}}', "config.interval.method", "wilson"),
        ("{bins: 3}", "config", "this is no valid JSON"),
    ],
)
def test_unknown_names_are_answered_with_the_known_ones(text, location, names) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_config(text, CalibrationConfig)
    (found,) = caught.value.violations
    assert found.location == location
    assert names in found.message


def test_no_message_names_the_checker() -> None:
    """Every key given a value of a type it cannot have."""
    for key in CalibrationConfig.model_fields:
        for value in (None, [[None]], {"x": {}}, "\u202e", -1.5):
            try:
                parse_config(json.dumps({key: value}), CalibrationConfig)
            except InvalidConfig as error:
                for found in error.violations:
                    said = f"{found.location}: {found.message}"
                    for word in ("Input should", "constrained", "literal", "pydantic", "[key]"):
                        assert word not in said
                    assert said.isascii()


def test_a_probability_next_to_its_end_is_no_internal_error(client) -> None:
    least = {
        "interval": {"level": 1 - 1e-9, "simultaneous": True},
        "selective": [{"max_risk": 1e-9, "delta": 1e-9}],
    }
    made = calibrate(client, calibration=OUTPUTS, config=json.dumps(least)).json()
    assert made["status"] == "succeeded", made["error"]


def test_titles() -> None:
    assert errors.InvalidOnnxModel.title() == "Invalid ONNX model"
    assert errors.OnnxModelCrashed.title() == "ONNX model crashed"
    assert errors.InvalidDataset.title() == "Invalid dataset"


def test_a_file_name_of_5000_characters(client) -> None:
    answer = client.post("/calibrate", files=[("calibration", ("a" * 5000, OUTPUTS))])
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
    assert "file name too long" in answer.json()["detail"]


def test_characters_that_turn_text_around_are_escaped(client, digits_calibration) -> None:
    for body in (
        {"calibration": "digits", "inputs": {"a\u202eb": [[0.0]]}},
        {"calibration": "digits", "a\u202eb": 1},
    ):
        answer = client.post("/predict", json=body)
        assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
        assert "\u202e" not in answer.text
        assert "u202e" in answer.text


@pytest.mark.parametrize("prefer", ['wait="30"', 'respond-async, wait = "30"', "wait=30"])
def test_prefer_may_be_quoted(client, prefer: str) -> None:
    files = [("calibration", ("c.csv", OUTPUTS)), ("config", (None, '{"bins": 5}'))]
    answer = client.post("/calibrate", files=files, headers={"Prefer": prefer})
    assert answer.status_code == httpx.codes.CREATED
    assert answer.headers["preference-applied"] == "wait=30"


def softmax_model() -> bytes:
    """Return a model whose output is a table of probabilities, with no softmax to be found."""
    import onnx  # noqa: PLC0415 - builds a model for this test alone
    from onnx import TensorProto, helper  # noqa: PLC0415 - as above

    rows = helper.make_tensor_value_info("inputs", TensorProto.FLOAT, [None, 3])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, 3])
    node = helper.make_node("Identity", ["inputs"], ["scores"])
    graph = helper.make_graph([node], "g", [rows], [scores])
    opset = [helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def test_doubts_about_the_upload_are_findings_and_warnings(client) -> None:
    rng = np.random.default_rng(5)
    text = io.BytesIO()
    rows = rng.dirichlet(np.ones(3), 200)
    labels = np.array([rng.choice(3, p=row) for row in rows])
    np.savez(text, inputs=rows.astype(np.float32), labels=labels)
    parts = {"model": softmax_model(), "calibration": text.getvalue()}

    def doubts(kind: str, **companions: bytes) -> tuple[dict[str, str], str]:
        config = json.dumps({"output": {"kind": kind}, "bins": 5, "top_k": [1]})
        answer = calibrate(client, **parts, config=config, **companions)
        assert answer.status_code == httpx.codes.CREATED, answer.text
        found = {finding["code"]: finding["message"] for finding in answer.json()["findings"]}
        return found, " ".join(answer.json()["warnings"])

    findings, warnings = doubts("logits", **{"model.onnx.data": b"none of it"})
    assert "softmax-twice" in findings
    assert "output.kind" not in warnings
    assert "no file named 'model.onnx.data'" in warnings
    findings, warnings = doubts("probabilities")
    assert findings == {}
    assert "model_data" not in warnings
