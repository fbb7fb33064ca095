"""Calibration over HTTP, on the digits example."""

import hashlib
import json

import httpx
import numpy as np
import pytest
from job_workspaces import logits_set
from runner_children import wait_until
from running_service import DIGITS, calibrate, calibrated, digits, kept_files, npz, quick_config

LOGITS = digits("calibration_logits.csv")


def test_resource_says_what_was_found(digits_calibration) -> None:
    found = digits_calibration

    named = {"name": "digits", "version": 1, "progress": None, "error": None}
    assert found.items() >= named.items()
    assert found["finished_at"] >= found["created_at"]
    assert found["config"].items() >= {"top_k": [1, 5], "bins": 10}.items()
    model = {"classes": 10, "provider": "CPUExecutionProvider"}
    model |= {"inputs": [{"name": "inputs", "dtype": "float32", "shape": [None, 64]}]}
    model |= {"sha256": hashlib.sha256(digits("model.onnx")).hexdigest()}
    assert found["model"].items() >= model.items()
    assert found["model"]["output"].items() >= {"name": "logits", "kind": "logits"}.items()
    assert found["data"].items() >= {"samples": 600, "evaluation_samples": 600}.items()
    assert sum(found["data"]["class_counts"]) == 600
    assert "onnxruntime-gpu" in found["versions"] or "onnxruntime" in found["versions"]
    assert set(found["serve"]) == {"1", "5"}


def test_accuracy_is_counted_from_the_labels(digits_calibration) -> None:
    table = np.genfromtxt(DIGITS / "calibration_logits.csv", delimiter=",", names=True)
    logits = np.column_stack([table[f"logit_{i}"] for i in range(10)])
    ranked = np.argsort(-logits, axis=1, kind="stable")

    for k in (1, 5):
        right = (ranked[:, :k] == table["label"][:, None]).any(axis=1).mean()
        assert digits_calibration["accuracy"][str(k)] == pytest.approx(right, abs=1e-12)


def test_accepted_at_once_without_prefer(client) -> None:
    answer = client.post("/calibrate", files={"calibration": ("c.csv", LOGITS)})

    assert answer.status_code == httpx.codes.ACCEPTED
    assert answer.json()["status"] in ("queued", "running", "succeeded")
    place = f"/calibrations/{answer.json()['id']}"
    assert answer.headers["location"] == place
    assert wait_until(lambda: client.get(place).json()["status"] == "succeeded")


def test_outputs_give_the_tables_of_the_model(client, digits_calibration) -> None:
    config = {"name": "outputs", "bins": 10}
    made = calibrated(client, config, calibration=LOGITS)
    assert made["model"] is None

    theirs, ours = (
        client.get(f"/calibrations/{found['id']}/bins").json()["tables"]
        for found in (digits_calibration, made)
    )
    for one, other in zip(ours, theirs, strict=True):
        assert (one["event"], one["measure"]) == (other["event"], other["measure"])
        if one["measure"] == "learned":  # cross-fitted in folds that are drawn by the rows
            continue
        for key in ("count", "hits", "probability", "interval"):
            assert [row[key] for row in one["bins"]] == [row[key] for row in other["bins"]]


def test_versions_are_never_reused(client) -> None:
    def make() -> dict:
        return calibrated(client, quick_config(name="again"), calibration=LOGITS)

    first, second = make(), make()
    assert (first["version"], second["version"]) == (1, 2)
    assert client.delete(f"/calibrations/{second['id']}").status_code == httpx.codes.NO_CONTENT
    assert make()["version"] == 3
    assert client.get("/calibrations/again@1").json()["id"] == first["id"]
    assert client.get("/calibrations/again@2").status_code == httpx.codes.NOT_FOUND


def test_list_pages_newest_first(client) -> None:
    for _ in range(3):
        calibrated(client, quick_config(name="paged"), calibration=LOGITS)
    params = {"name": "paged", "limit": 2}
    first = client.get("/calibrations", params=params).json()
    assert [row["version"] for row in first["calibrations"]] == [3, 2]
    rest = client.get("/calibrations", params=params | {"cursor": first["next_cursor"]}).json()
    assert [row["version"] for row in rest["calibrations"]] == [1]
    assert rest["next_cursor"] is None
    found = client.get("/calibrations", params={"status": "failed", "name": "paged"}).json()
    assert found["calibrations"] == []


def test_a_row_the_model_cannot_answer_fails_the_calibration(service) -> None:
    """Only a run over all rows finds it: the calibration ends `failed` and says which row."""
    rng = np.random.default_rng(1)
    images = rng.integers(0, 17, (600, 64)).astype(np.float32)
    images[500] = 3e38  # finite, but its logits overflow
    answer = calibrate(
        service.client,
        model=digits("model.onnx"),
        calibration=npz(inputs=images, labels=np.arange(600) % 10),
    )
    found = answer.json()
    assert found["status"] == "failed"
    assert "500" in json.dumps(found["error"])
    left = [path for path in kept_files(service.folder) if found["id"] in path]
    assert [path.rpartition("/")[2] for path in left] == ["model-0"]
    body = {"calibration": found["id"], "inputs": [[0.0] * 64]}
    assert service.client.post("/predict", json=body).status_code == httpx.codes.CONFLICT


def test_config_reaches_the_tables(client) -> None:
    config = {
        "name": "options",
        "top_k": [1, 3],
        "measures": ["margin", "entropy"],
        "serve": {"1": "margin", "3": "entropy"},
        "bins": 6,
        "lookup": "interpolated",
        "interval": {"method": "hoeffding", "level": 0.9},
        "classes": [f"digit {i}" for i in range(10)],
    }
    found = calibrated(client, config, calibration=LOGITS)
    assert found["serve"] == {"1": "margin", "3": "entropy"}
    tables = client.get("/calibrations/options/bins").json()["tables"]
    assert {(t["event"], t["measure"]) for t in tables} == {
        (k, m) for k in (1, 3) for m in ("margin", "entropy")
    }
    for table in tables:
        assert table["lookup"] == "interpolated"
        assert table["requested_bins"] == 6
        probabilities = [b["probability"] for b in table["bins"]]
        assert probabilities == sorted(probabilities, reverse=True)
    body = {"calibration": "options", "logits": [[0.0] * 9 + [1.0]]}
    (prediction,) = client.post("/predict", json=body).json()["predictions"]
    assert prediction["label"] == "digit 9"
    assert prediction.keys() >= {"top1", "top3"}


def test_two_classes_leave_out_top5(client) -> None:
    found = calibrated(client, calibration=logits_set(n_classes=2))
    assert found["config"]["top_k"] == [1]
    assert any("Top-5" in warning for warning in found["warnings"])


def test_cancel_a_finished_calibration_is_a_conflict(client, digits_calibration) -> None:
    answer = client.post(f"/calibrations/{digits_calibration['id']}/cancel")

    assert answer.status_code == httpx.codes.CONFLICT
    assert answer.headers["content-type"] == "application/problem+json"
