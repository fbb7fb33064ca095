"""Calibration over HTTP, on the digits example."""

import hashlib
import threading

import httpx
from repeated_fits import RepeatedFits
from runner_children import wait_until
from running_service import calibrated, digits, quick_config

LOGITS = digits("calibration_logits.csv")


def test_resource_says_what_was_found(digits_calibration) -> None:
    made = digits_calibration
    assert made.items() >= {"name": "digits", "version": 1, "progress": None, "error": None}.items()
    assert made["finished_at"] >= made["created_at"]
    assert made["config"].items() >= {"top_k": [1, 5], "bins": 10}.items()
    model = {"classes": 10, "provider": "CPUExecutionProvider"}
    model |= {"inputs": [{"name": "inputs", "dtype": "float32", "shape": [None, 64]}]}
    model |= {"sha256": hashlib.sha256(digits("model.onnx")).hexdigest()}
    assert made["model"].items() >= model.items()
    assert made["model"]["output"].items() >= {"name": "logits", "kind": "logits"}.items()
    assert made["data"].items() >= {"samples": 600, "evaluation_samples": 600}.items()
    assert sum(made["data"]["class_counts"]) == 600
    assert "onnxruntime-gpu" in made["versions"] or "onnxruntime" in made["versions"]
    assert set(made["serve"]) == {"1", "5"}


def test_accepted_at_once_without_prefer(client, monkeypatch) -> None:
    is_accepted, fit = threading.Event(), RepeatedFits.fit

    def fit_later(*arguments, **options):
        assert is_accepted.wait(60)
        return fit(*arguments, **options)

    monkeypatch.setattr(RepeatedFits, "fit", fit_later)
    files = [("calibration", ("c.csv", LOGITS)), ("config", (None, quick_config()))]
    response = client.post("/calibrate", files=files)
    is_accepted.set()
    assert response.status_code == httpx.codes.ACCEPTED
    assert response.json()["status"] in ("queued", "running")
    place = f"/calibrations/{response.json()['id']}"
    assert response.headers["location"] == place
    assert wait_until(lambda: client.get(place).json()["status"] == "succeeded")


def test_outputs_give_the_tables_of_the_model(client, shelf) -> None:
    made = calibrated(client, calibration=LOGITS)
    assert made["model"] is None
    theirs, ours = (
        client.get(f"/calibrations/{resource['id']}/bins").json()["tables"]
        for resource in (shelf("quick-digits"), made)
    )
    for one, other in zip(ours, theirs, strict=True):
        assert (one["event"], one["measure"]) == (other["event"], other["measure"])
        for key in ("count", "hits", "probability", "interval"):
            assert [row[key] for row in one["bins"]] == [row[key] for row in other["bins"]]
