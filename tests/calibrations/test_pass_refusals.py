"""Measures with passes that a model does not support: one violation, nothing stored."""

import json
import re
from typing import Any

import httpx
import pytest
from graph_models import constant, make_model, node, value
from job_workspaces import inputs_set, logits_set
from model_services import (
    MEMBERS,
    as_file,
    calibrate_models,
    labelled_sets,
    model_file,
    predictions,
)
from runner_models import weights
from running_service import digits, kept_files, npz, service_on

SETS = labelled_sets()
MEASURES = "config.measures"
IMAGES = as_file(SETS)
FLAT = npz(inputs=SETS["calibration_inputs"].reshape(600, 64), labels=SETS["calibration_labels"])


def refused(
    service, models: list[bytes], config: dict[str, Any], *, calibration: bytes
) -> dict[str, str]:
    """Return the one violation; nothing may be left of the upload."""
    before = kept_files(service.folder)
    answer = calibrate_models(service.client, models, config, calibration=calibration)

    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    (error,) = answer.json()["errors"]
    assert kept_files(service.folder) == before
    assert service.client.get("/calibrations").json()["calibrations"] == []
    return error


STEPS = make_model(
    [node("Round", ["x"], ["steps"]), node("MatMul", ["steps", "w"], ["y"])],
    inputs=[value("x", ("N", 6))],
    outputs=[value("y", ("N", 10))],
    initializers=[constant("w", weights())],
).SerializeToString()
UPLOADS = {
    "plain": ([model_file("small_cnn.onnx")], IMAGES),
    "several": ([model_file(name) for name in MEMBERS], IMAGES),
    "unlike": ([model_file(name) for name in (*MEMBERS[:2], "member_other_classes.onnx")], IMAGES),
    "random": ([model_file("variational_mlp.onnx")], IMAGES),
    "steps": ([STEPS], inputs_set()),
    "outputs": ([], logits_set()),
    "digits": ([digits("model.onnx")], FLAT),
}


def of(*measures: str) -> dict[str, Any]:
    return {"measures": list(measures)}


@pytest.mark.parametrize(
    ("upload", "config", "location", "message"),
    [
        ("plain", of("entropy", "dropout_variance"), MEASURES, "last_layer_dropout_variance"),
        ("several", of("entropy", "dropout_variance"), MEASURES, "needs one model"),
        ("several", of("entropy", "last_layer_dropout_variance"), MEASURES, "needs one model"),
        ("several", of("entropy", "gradient_norm"), MEASURES, "needs one model"),
        ("several", of("entropy", "output:other"), MEASURES, "needs one model"),
        ("several", of("entropy", "energy"), MEASURES, "logits"),
        ("unlike", of("entropy"), "model[2]", "classes"),
        ("random", of("ensemble_variance", "gradient_norm"), MEASURES, "gradient_norm"),
        ("steps", of("entropy", "gradient_norm"), MEASURES, "zero.* as trees are"),
        ("outputs", of("dropout_variance"), MEASURES, "dropout_variance needs an ONNX model"),
        ("digits", {"dropout": {"passes": 1}}, "config.dropout.passes", "integer from 2 to 1000"),
        ("digits", {"dropout": {"rate": 1.0}}, "config.dropout.rate", "above 0 and below 1"),
        ("digits", {"gradient": {"directions": 0}}, "config.gradient.directions", "from 1 to 1000"),
        ("digits", {"gradient": {"step": 1}}, "config.gradient.step", "from 1e-06 to 0.1"),
    ],
)
def test_what_the_model_or_the_configuration_does_not_allow(
    service, upload: str, config: dict[str, Any], location: str, message: str
) -> None:
    models, calibration = UPLOADS[upload]
    error = refused(service, models, config, calibration=calibration)
    assert error["location"] == location
    assert re.search(message, error["message"]), error


def test_too_many_models(service) -> None:
    before = kept_files(service.folder)
    models = [model_file(MEMBERS[0])] * 101
    answer = calibrate_models(service.client, models, {}, calibration=IMAGES)
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
    (error,) = answer.json()["errors"]
    assert error == {"location": "model", "message": "expected at most 100 ONNX files, got 101"}
    assert kept_files(service.folder) == before


def test_a_row_whose_passes_overflow_fails_the_calibration(tmp_path) -> None:
    images = SETS["calibration_inputs"].copy()
    images[500] = 3e38
    calibration = npz(inputs=images, labels=SETS["calibration_labels"])
    config = {"measures": ["entropy", "dropout_variance"], "name": "overflow"}
    with service_on(tmp_path) as client:
        models = [model_file("hidden_dropout_cnn.onnx")]
        found = calibrate_models(client, models, config, calibration=calibration).json()
    assert found["status"] == "failed"
    assert "500" in json.dumps(found["error"])


def test_members_may_be_sent_twice_with_a_warning(tmp_path) -> None:
    with service_on(tmp_path) as client:
        models = [model_file(MEMBERS[member]) for member in (0, 1, 0)]
        config = {"measures": ["entropy", "ensemble_variance"]}
        found = calibrate_models(client, models, config, calibration=IMAGES).json()
        assert found["status"] == "succeeded", found
        assert any("counts twice" in warning for warning in found["warnings"])
        assert predictions(client, found["id"], SETS["evaluation_inputs"][:2])
