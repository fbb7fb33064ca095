"""Errors of a configuration and an upload, worded for the caller."""

import json

import httpx
import numpy as np
import pytest
from graph_models import passthrough
from running_service import calibrated, digits, npz, quick_config

from service.calibrations.config import CalibrationConfig, parse_config
from service.calibrations.upload.set_checks import checked_options
from service.errors import InvalidConfig

OUTPUTS = digits("calibration_logits.csv")
# The text of the configuration, the place, and what the message names: the range, or the fix.
CASES = [
    ('{"bins": "10"}', "config.bins", '"auto" or an integer from 1 to 10000'),
    ('{"top_k": [1, 1001]}', "config.top_k[1]", "an integer from 1 to 1000"),
    ('{"classes": ["a", 1]}', "config.classes[1]", "1 to 200 characters"),
    ('{"output": {"kind": 1}}', "config.output.kind", '"logits" or "probabilities"'),
    ('{"monotone": 1}', "config.monotone", "true or false"),
    ('{"interval": 3}', "config.interval", "an object"),
    ('{"folds": 1}', "config.folds", "from 2 to 100"),
    ('{"name": "../../etc"}', "config.name", "1 to 100 of the characters A-Z, a-z, 0-9"),
    ('{"name": "123e4567-e89b-12d3-a456-426614174000"}', "config.name", "id"),
    ('{"top_k": [1, 1]}', "config", "top_k"),
    ('{"serve": {"3": "entropy"}}', "config", "serve: '3'"),
    ("[" * 9999, "config", "nested too deeply"),
    ("{bins: 3}", "config", "JSON"),
    ('{"a\\u202eb": 1}', "config.a\\u202eb", "no such key"),
    ('{"measure": []}', "config.measure", "did you mean 'measures'?"),
    ('{"measures": ["variance"]}', "config.measures[0]", "entropy"),
    ('{"measures": ["supplied:"]}', "config.measures[0]", "supplied:"),
    ('{"measures": ["output:"]}', "config.measures[0]", "the name of an output"),
    ('{"measures": ["output:a\\nb"]}', "config.measures[0]", "printable"),
    ('{"dropout": {"passes": 1}}', "config.dropout.passes", "from 2 to 1000"),
    ('{"dropout": {"rate": 1.0}}', "config.dropout.rate", "below 1"),
    ('{"gradient": {"directions": 0}}', "config.gradient.directions", "from 1 to 1000"),
    ('{"gradient": {"step": 1}}', "config.gradient.step", "from 1e-06 to 0.1"),
    ('{"decision_threshold": 1}', "config.decision_threshold", "above 0 and below 1"),
    ('{"interval": {"method": "x"}}', "config.interval.method", "wilson"),
    ('{"interval": {"levels": 1}}', "config.interval.levels", "did you mean 'level'?"),
    ('{"interval": {"level": 0.9999999999999999}}', "config.interval.level", "0.999999999"),
    ('{"strict": ["labels-shift"]}', "config.strict", "labels-shifted, labels-permuted"),
    ('{"strict": "all"}', "config.strict", "true or false"),
    ('{"preprocessing": {"resise": 1}}', "config.preprocessing.resise", "did you mean 'resize'?"),
]


@pytest.mark.parametrize(("text", "location", "named"), CASES)
def test_config(text: str, location: str, named: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        parse_config(text, CalibrationConfig)
    (violation,) = refused.value.violations
    assert violation.location == location
    assert named in violation.message


def test_no_message_names_the_checker() -> None:
    """Every key given values of types it cannot have."""
    for wrong in ([[None]], {"x": {}}, "\u202e", -1.5):
        text = json.dumps(dict.fromkeys(CalibrationConfig.model_fields, wrong))
        with pytest.raises(InvalidConfig) as refused:
            parse_config(text, CalibrationConfig)
        assert len(refused.value.violations) > 10
        for violation in refused.value.violations:
            sentence = f"{violation.location}: {violation.message}"
            for word in ("Input should", "constrained", "literal", "pydantic", "[key]"):
                assert word not in sentence
            assert sentence.isascii()


MANY = 50_000
BOMBS = [
    ({f"k{n}": 0 for n in range(MANY)}, "config"),
    ({"output": {f"k{n}": 0 for n in range(MANY)}}, "config.output"),
    ({"measures": [0] * MANY}, "config.measures"),
    ({"classes": [""] * MANY}, "config.classes"),
    ({"class_map": {f"k{n}": "x" for n in range(MANY)}}, "config.class_map"),
    ({"class_map": {f"k{n}": -1 for n in range(MANY)}}, "config.class_map"),
    ({"columns": {"x": [1] * MANY}}, "config.columns"),
    ({"columns": {f"x{n}": "" for n in range(MANY)}}, "config.columns"),
]


@pytest.mark.parametrize(("config", "place"), BOMBS, ids=range(len(BOMBS)))
def test_a_large_configuration_has_one_error(config, place) -> None:
    with pytest.raises(InvalidConfig) as refused:
        parse_config(json.dumps(config), CalibrationConfig)
    assert [violation.location for violation in refused.value.violations] == [place]


def test_many_names_are_no_error() -> None:
    classes = [f"class {n}" for n in range(50_000)]
    config = {"classes": classes, "columns": {"x": ["a" * 900] * 40, "label": "y"}}
    assert parse_config(json.dumps(config), CalibrationConfig).classes == classes


def test_a_probability_next_to_its_end_is_no_internal_error(client) -> None:
    interval, risk = {"level": 1 - 1e-9, "simultaneous": True}, {"max_risk": 1e-9, "delta": 1e-9}
    calibrated(client, {"interval": interval, "selective": [risk]}, calibration=OUTPUTS)


TOO_MANY_BINS = [
    {"measures": ["entropy", "margin"], "top_k": [1, 2, 3, 4, 5, 6], "bins": 10_000},
    {"measures": [f"supplied:m{n}" for n in range(50)] + ["entropy"], "top_k": [*range(1, 21)]},
]


@pytest.mark.parametrize("config", TOO_MANY_BINS)
def test_the_bins_of_all_tables_are_bounded_in_uploads_and_refits(config) -> None:
    asked = parse_config(json.dumps(config), CalibrationConfig)
    options = {"kind": "logits", "supplied": [f"m{n}" for n in range(50)], "model": None}
    with pytest.raises(InvalidConfig, match="100000 bins in all tables") as refused:
        checked_options(asked, tuple(asked.top_k), **options)
    assert refused.value.violations[0].location == "config.bins"
    checked_options(asked.model_copy(update={"bins": 10}), tuple(asked.top_k), **options)


def test_a_file_name_of_5000_characters(client) -> None:
    response = client.post("/calibrate", files=[("calibration", ("a" * 5000, OUTPUTS))])
    assert response.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
    assert "file name" in response.json()["detail"]


@pytest.mark.parametrize("field", [{"inputs": {"a\u202eb": [[0.0]]}}, {"a\u202eb": 1}])
def test_bidirectional_characters_are_escaped(client, digits_calibration, field) -> None:
    response = client.post("/predict", json={"calibration": "digits"} | field)
    assert response.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "\u202e" not in response.text
    assert "u202e" in response.text


def test_prefer_may_be_quoted(client) -> None:
    files = [("calibration", ("c.csv", OUTPUTS)), ("config", (None, quick_config()))]
    headers = {"Prefer": 'respond-async, wait = "30"'}
    response = client.post("/calibrate", files=files, headers=headers)
    assert response.status_code == httpx.codes.CREATED
    assert response.headers["preference-applied"] == "wait=30"


@pytest.mark.parametrize(("batch", "doubt"), [("N", "'model.onnx.data'"), (1, "fixed at 1")])
def test_doubts_about_the_upload_are_warnings(client, batch, doubt) -> None:
    parts = {"model": passthrough(shape=(batch, 3)).SerializeToString()}
    if batch == "N":
        parts["model.onnx.data"] = b"none of it"
    rows = np.random.default_rng(5).normal(size=(60, 3)).astype(np.float32)
    made = calibrated(client, calibration=npz(inputs=rows, labels=rows.argmax(axis=1)), **parts)
    told = " ".join(made["warnings"])
    assert [one for one in ("'model.onnx.data'", "fixed at 1") if one in told] == [doubt]
