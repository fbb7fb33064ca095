"""Measures with passes that a model does not support: one violation, nothing stored."""

import json
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
IMAGES = as_file(SETS)
FLAT = npz(inputs=SETS["calibration_inputs"].reshape(600, 64), labels=SETS["calibration_labels"])


def refused(
    service, models: list[bytes], config: dict[str, Any], *, calibration: bytes = IMAGES
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


# The models that are sent, a measure of them, and what the refusal says.
MODELS = {
    "no dropout": (["small_cnn.onnx"], "dropout_variance", "last_layer_dropout_variance"),
    "dropout of several": (MEMBERS, "dropout_variance", "needs one model"),
    "last layers of several": (MEMBERS, "last_layer_dropout_variance", "needs one model"),
    "gradients of several": (MEMBERS, "gradient_norm", "needs one model"),
    "an output of several": (MEMBERS, "output:other", "needs one model"),
    "energy of a mean": (MEMBERS, "energy", "logits"),
    "gradients of noise": (["variational_mlp.onnx"], "gradient_norm", "gradient_norm"),
}


@pytest.mark.parametrize("case", MODELS)
def test_measures_that_a_model_does_not_have(service, case: str) -> None:
    names, measure, message = MODELS[case]
    measures = ["ensemble_variance"] if case == "gradients of noise" else ["entropy"]
    models = [model_file(name) for name in names]
    error = refused(service, models, {"measures": [*measures, measure]})
    assert error["location"] == "config.measures"
    assert message in error["message"]


def test_members_are_alike(service) -> None:
    models = [model_file(name) for name in (*MEMBERS[:2], "member_other_classes.onnx")]
    error = refused(service, models, {"measures": ["entropy"]})
    assert error["location"] == "model[2]"
    assert "classes" in error["message"]


def test_a_model_of_steps_is_flat(service) -> None:
    steps = make_model(
        [node("Round", ["x"], ["steps"]), node("MatMul", ["steps", "w"], ["y"])],
        inputs=[value("x", ("N", 6))],
        outputs=[value("y", ("N", 10))],
        initializers=[constant("w", weights())],
    ).SerializeToString()
    config = {"measures": ["entropy", "gradient_norm"]}
    error = refused(service, [steps], config, calibration=inputs_set())
    assert error["location"] == "config.measures"
    assert "zero" in error["message"]
    assert "trees" in error["message"]


def test_uploaded_outputs_cannot_be_run_again(service) -> None:
    error = refused(service, [], {"measures": ["dropout_variance"]}, calibration=logits_set())
    assert error["location"] == "config.measures"
    assert "dropout_variance needs an ONNX model" in error["message"]


@pytest.mark.parametrize(
    ("block", "location", "message"),
    [
        ({"dropout": {"passes": 1}}, "config.dropout.passes", "an integer from 2 to 1000"),
        ({"dropout": {"rate": 1.0}}, "config.dropout.rate", "a number above 0 and below 1"),
        ({"gradient": {"directions": 0}}, "config.gradient.directions", "from 1 to 1000"),
        ({"gradient": {"step": 1}}, "config.gradient.step", "a number from 1e-06 to 0.1"),
    ],
)
def test_blocks_out_of_range(service, block: dict, location: str, message: str) -> None:
    error = refused(service, [digits("model.onnx")], block, calibration=FLAT)
    assert error["location"] == location
    assert message in error["message"]


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
