"""Measures with passes that a model does not support: one violation, nothing stored."""

import json
from typing import Any

import httpx
import numpy as np
import pytest
from pass_service import (
    MEMBERS,
    as_file,
    calibrate_models,
    labelled_sets,
    model_file,
    npz,
    predictions,
)
from running_service import digits, kept_files, service_on

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


@pytest.fixture(scope="module")
def tree() -> bytes:
    pytest.importorskip("skl2onnx")
    from skl2onnx import to_onnx  # noqa: PLC0415 - a test dependency
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415

    rows = SETS["calibration_inputs"].reshape(600, 64)
    forest = RandomForestClassifier(5, max_depth=4, random_state=0)
    forest.fit(rows, SETS["calibration_labels"])
    return to_onnx(forest, rows[:1], options={"zipmap": False}).SerializeToString()


def test_dropout_needs_dropout_nodes(service) -> None:
    error = refused(service, [model_file("small_cnn.onnx")], {"measures": ["dropout_variance"]})
    assert error["location"] == "config.measures"
    assert "no Dropout" in error["message"]
    assert "last_layer_dropout_variance" in error["message"]


def test_a_tree_is_flat(service, tree) -> None:
    config = {"measures": ["entropy", "gradient_norm"]}
    error = refused(service, [tree], config, calibration=FLAT)
    assert error["location"] == "config.measures"
    assert "zero" in error["message"]
    assert "trees" in error["message"]


def test_members_are_alike(service) -> None:
    names = ("member_0.onnx", "member_1.onnx", "member_other_classes.onnx")
    error = refused(service, [model_file(name) for name in names], {"measures": ["entropy"]})
    assert error["location"] == "model[2]"
    assert "classes" in error["message"]


@pytest.mark.parametrize(
    "measure",
    ["dropout_variance", "last_layer_dropout_variance", "ensemble_variance", "gradient_norm"],
)
def test_uploaded_outputs_cannot_be_run_again(service, measure: str) -> None:
    logits = np.random.default_rng(0).normal(size=(100, 5))
    outputs = npz(logits=logits, labels=logits.argmax(axis=1))
    error = refused(service, [], {"measures": ["entropy", measure]}, calibration=outputs)
    assert error["location"] == "config.measures"
    assert f"{measure} needs an ONNX model" in error["message"]


@pytest.mark.parametrize(
    "measure",
    ["dropout_variance", "last_layer_dropout_variance", "gradient_norm", "output:other"],
)
def test_what_needs_one_model(service, measure: str) -> None:
    models = [model_file(name) for name in MEMBERS]
    error = refused(service, models, {"measures": ["entropy", measure]})
    assert error["location"] == "config.measures"
    assert f"'{measure}' needs one model" in error["message"]


def test_a_mean_has_no_energy(service) -> None:
    models = [model_file(name) for name in MEMBERS]
    error = refused(service, models, {"measures": ["energy"]})
    assert error["location"] == "config.measures"
    assert "logits" in error["message"]


def test_noise_and_a_step_do_not_go_together(service) -> None:
    model = model_file("variational_mlp.onnx")
    error = refused(service, [model], {"measures": ["ensemble_variance", "gradient_norm"]})
    assert error["location"] == "config.measures"
    assert "gradient_norm" in error["message"]


@pytest.mark.parametrize(
    ("block", "location", "message"),
    [
        ({"dropout": {"passes": 1}}, "config.dropout.passes", "an integer from 2 to 1000"),
        ({"dropout": {"passes": 1001}}, "config.dropout.passes", "an integer from 2 to 1000"),
        ({"dropout": {"rate": 1.0}}, "config.dropout.rate", "a number above 0 and below 1"),
        ({"dropout": {"p": 0.5}}, "config.dropout.p", "there is no such key"),
        ({"ensemble": {"passes": 1.5}}, "config.ensemble.passes", "an integer from 2 to 1000"),
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
    models = [model_file("member_0.onnx")] * 101
    answer = calibrate_models(service.client, models, {}, calibration=IMAGES)
    assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
    (error,) = answer.json()["errors"]
    assert error == {"location": "model", "message": "expected at most 100 ONNX files, got 101"}
    assert kept_files(service.folder) == before


def test_a_row_whose_passes_overflow_fails_the_calibration(service) -> None:
    images = SETS["calibration_inputs"].copy()
    images[500] = 3e38
    calibration = npz(inputs=images, labels=SETS["calibration_labels"])
    config = {"measures": ["entropy", "dropout_variance"], "name": "overflow"}
    with service_on(service.folder / "overflow") as client:
        models = [model_file("hidden_dropout_cnn.onnx")]
        found = calibrate_models(client, models, config, calibration=calibration).json()
    assert found["status"] == "failed"
    assert "500" in json.dumps(found["error"])


def test_members_may_be_sent_twice_with_a_warning(tmp_path) -> None:
    with service_on(tmp_path) as client:
        models = [model_file(name) for name in ("member_0.onnx", "member_1.onnx", "member_0.onnx")]
        config = {"measures": ["entropy", "ensemble_variance"]}
        found = calibrate_models(client, models, config, calibration=IMAGES).json()
        assert found["status"] == "succeeded", found
        assert any("counts twice" in warning for warning in found["warnings"])
        assert predictions(client, found["id"], SETS["evaluation_inputs"][:2])
