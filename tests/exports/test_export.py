"""The exported ONNX file answers as the service does."""

import hashlib
import json
from pathlib import Path

import httpx
import numpy as np
import onnx
import onnxruntime
import pytest
from model_services import (
    MEMBERS,
    as_file,
    calibrate_models,
    labelled_sets,
    model_file,
    predictions,
    quick,
)
from plain_answers import assert_says
from running_service import DIGITS, digits, kept_files, npz, refit
from running_service import calibrated as calibrated_by

SETS = labelled_sets()
X = SETS["evaluation_inputs"]
IMAGES = as_file(SETS)


def calibrated(client, name, models=("small_cnn.onnx",), **config) -> dict:
    answer = calibrate_models(
        client,
        [model_file(model) for model in models],
        {"name": name, "top_k": [1, 5], "bins": 10} | config,
        calibration=IMAGES,
    )
    assert answer.status_code == httpx.codes.CREATED, answer.text
    assert answer.json()["status"] == "succeeded", answer.json()["error"]
    return answer.json()


def export(client, name) -> httpx.Response:
    return client.get(f"/calibrations/{name}/model.onnx")


def run(content: bytes | Path, x) -> dict:
    session = onnxruntime.InferenceSession(content)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: x}), strict=True))


LAST = "last_layer_dropout_variance"
SETTINGS = {
    "smooth": ("small_cnn.onnx", {}),
    "step": ("small_cnn.onnx", {"lookup": "step"}),
    "line": ("small_cnn.onnx", {"lookup": "interpolated", "monotone": True}),
    "named": (
        "small_cnn.onnx",
        {"serve": {"1": "margin", "5": "energy"}, "measures": ["margin", "energy"]},
    ),
    "last": ("small_cnn.onnx", {"measures": [LAST]}),
    "cut": ("squeezenet_like.onnx", {"measures": [LAST, "entropy"], "serve": {"1": LAST}}),
    "words": ("hidden_dropout_cnn.onnx", {"classes": [f"digit {i}" for i in range(10)]}),
}


@pytest.mark.parametrize("case", quick(SETTINGS, "smooth", "cut"))
def test_the_file_answers_as_the_service_does(client, case) -> None:
    model, config = case
    calibrated(client, "settings", [model], **config)
    answer = export(client, "settings")
    assert answer.status_code == httpx.codes.OK, answer.text
    assert_says(run(answer.content, X), predictions(client, "settings", X))


@pytest.fixture(scope="module")
def exported(client) -> httpx.Response:
    calibrated(client, "whole")
    return export(client, "whole").raise_for_status()


def test_headers_tell_digest_and_parity(exported) -> None:
    assert exported.headers["ETag"] == f'"{hashlib.sha256(exported.content).hexdigest()}"'
    assert exported.headers["Content-Disposition"].endswith('filename="whole-1.onnx"')
    figures = dict(part.split("=") for part in exported.headers["Howsure-Parity"].split("; "))
    assert figures.keys() == {"samples", "classes", "bins", "probability"}
    assert (figures["samples"], figures["classes"], figures["bins"]) == ("600", "0", "0")
    assert float(figures["probability"]) <= 1e-6


def test_the_report_tells_the_same(client, exported) -> None:
    found = client.get("/report", params={"calibration": "whole"}).json()["export"]
    assert found["sha256"] == hashlib.sha256(exported.content).hexdigest()
    assert found["size"] == len(exported.content)
    assert (found["parity"]["samples"], found["parity"]["bins"]) == (600, 0)


def test_it_is_made_once(client, service, exported) -> None:
    again = export(client, "whole")
    assert again.content == exported.content
    calibration_id = client.get("/calibrations/whole").json()["id"]
    kept = [path for path in kept_files(service.folder) if f"{calibration_id}/export" in path]
    assert len(kept) == 1


def test_metadata_name_calibration_measures_and_model(exported) -> None:
    model = onnx.load_from_string(exported.content)
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert notes["howsure.name"] == "whole"
    assert notes["howsure.columns"] == "null"
    assert json.loads(notes["howsure.measures"]).keys() == {"1", "5"}
    assert notes["howsure.model_sha256"] == hashlib.sha256(model_file("small_cnn.onnx")).hexdigest()


def test_a_refit_has_a_file_of_its_own(client, exported) -> None:
    changed = refit(client, "whole", bins=5).json()
    report = client.get("/report", params={"calibration": changed["id"]}).json()
    assert report["export"] is None
    answer = export(client, changed["id"])
    assert run(answer.content, X)["top1_bin"].max() == 4
    assert_says(run(answer.content, X), predictions(client, changed["id"], X))


def test_a_refit_to_fewer_events_answers_with_the_same_head(client, exported) -> None:
    changed = refit(client, "whole", top_k=[1]).json()
    found = run(export(client, changed["id"]).content, X)
    assert not any(name.startswith("top5") for name in found)
    assert_says(found, predictions(client, changed["id"], X))


def test_it_goes_with_its_calibration(client, service) -> None:
    made = calibrated(client, "passing")
    export(client, "passing").raise_for_status()
    assert any(made["id"] in path for path in kept_files(service.folder))
    client.delete(f"/calibrations/{made['id']}").raise_for_status()
    assert not any(made["id"] in path for path in kept_files(service.folder))
    assert export(client, made["id"]).status_code == httpx.codes.NOT_FOUND


@pytest.mark.parametrize(
    ("models", "measure", "message"),
    [
        (["small_cnn.onnx"], "gradient_norm", "gradient_norm"),
        (MEMBERS, "entropy", "cannot be exported as one file"),
        (["variational_mlp.onnx"], "ensemble_variance", "cannot be exported as one file"),
        ([], "entropy", "no ONNX model"),
    ],
)
def test_what_is_no_single_graph_is_refused(client, models, measure, message) -> None:
    logits = np.random.default_rng(0).normal(size=(200, 7))
    outputs = npz(logits=logits, labels=np.arange(200) % 7)
    files = [model_file(name) for name in models]
    config = {"name": "refused", "measures": [measure]}
    made = calibrate_models(client, files, config, calibration=IMAGES if models else outputs)
    assert made.json()["status"] == "succeeded", made.text
    answer = export(client, "refused")
    assert answer.status_code == httpx.codes.CONFLICT
    assert message in answer.json()["detail"]


def test_weights_beside_the_model_stay_beside_it(client, tmp_path) -> None:
    model = DIGITS.parents[1] / "tests" / "data" / "digits" / "model_external.onnx"
    name = "model_external.onnx.data"
    weights = {name: model.with_name(name).read_bytes()}
    sets = {"model": model.read_bytes(), "calibration": digits("calibration.npz")}
    calibrated_by(client, {"name": "beside", "bins": 5}, **sets, **weights)
    content = export(client, "beside").raise_for_status().content
    assert weights[name][:1000] not in content
    (tmp_path / "model.onnx").write_bytes(content)
    kept = client.get(f"/calibrations/beside/model_data/{name}").raise_for_status()
    assert kept.content == weights[name]
    (tmp_path / name).write_bytes(kept.content)
    rows = X.reshape(-1, 64) * 16
    assert_says(run(tmp_path / "model.onnx", rows), predictions(client, "beside", rows))
    missing = client.get("/calibrations/beside/model_data/other.bin")
    assert missing.status_code == httpx.codes.NOT_FOUND
