"""Real networks on real images, where a copy of the data lies beside the checkout."""

from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest
from fashion_mnist import DATA, REQUIRES_DATA, images_and_labels
from running_service import calibrated

from service.child.onnx.loading import load, read_files
from service.child.onnx.watchdog import Watchdog
from service.runner.child_requests import ChildRequests
from service.runner.messages.onnx_models import OnnxModelFiles
from service.runner.messages.passes import PassPlan

pytestmark = REQUIRES_DATA


def report_on(
    client: httpx.Client, name: str, *models: str, sets: str = "_float32", **config: Any
) -> dict:
    """Calibrate a network, or an ensemble, with ten bins and return the report."""
    made = calibrated(
        client,
        {"name": name, "bins": 10} | config,
        full=True,
        model=[(DATA / model).read_bytes() for model in models],
        calibration=(DATA / f"calibration{sets}.npz").read_bytes(),
        evaluation=(DATA / f"evaluation{sets}.npz").read_bytes(),
    )
    return client.get("/report", params={"calibration": made["id"]}).json()


@pytest.fixture(scope="module")
def plain(client) -> dict:
    return report_on(client, "fashion", "model.onnx")


def test_accuracy_is_that_of_the_data_sheet_and_probability_is_calibrated(plain) -> None:
    assert plain["events"]["1"]["accuracy"] == pytest.approx(0.9202, abs=0.0005)
    assert plain["events"]["5"]["accuracy"] == pytest.approx(0.9996, abs=0.0005)
    event = plain["events"]["1"]
    assert event["measures"][event["served"]]["evaluation"]["ece"] < 0.010


def test_the_ensembles_mean_probability_is_as_accurate_as_the_data_sheet_says(client) -> None:
    members = [f"ensemble_{n}.onnx" for n in range(4)]
    measures = ["neg_log_pmax", "ensemble_variance"]
    scores = report_on(client, "ensemble", *members, measures=measures)["model_scores"]
    scores = scores["evaluation"]
    assert scores["accuracy"]["1"] == pytest.approx(0.8994, abs=0.0005)
    assert scores["nll"] == pytest.approx(0.2696, abs=0.0005)
    rows = scores["passes"]["ensemble_variance"]
    assert (rows[-1]["passes"], rows[-1]["accuracy"]["1"]) == (4, scores["accuracy"]["1"])
    assert rows[0]["accuracy"]["1"] == pytest.approx(0.9012, abs=0.0005)


def test_the_classes_spread_as_in_the_framework_that_trained_the_network() -> None:
    """The largest standard deviation of a class over 20 passes: 0.0496 there."""
    images = images_and_labels("evaluation")[0][:1000]
    requests = ChildRequests(load_timeout=1.0, run_timeout=1.0, max_classes=100, threads=2)
    message = requests.message(OnnxModelFiles(DATA / "model_dropout.onnx"), "cpu")
    spreads = []
    for seed in range(10):
        passes = (PassPlan("dropout_variance", passes=20, seed=seed),)
        request = replace(message, top_k=(1,), passes=passes, location="images")
        files = read_files(request.paths, {})
        model = load(files, request, {"input": images[:20]}, Watchdog()).answering
        parts = [model.passes({"input": part}, "images") for part in np.split(images, 10)]
        largest = np.exp(np.concatenate(parts)).std(axis=1, ddof=1).max(axis=1)
        assert (largest > 0).all()
        spreads.append(largest.mean())
    assert np.mean(spreads) == pytest.approx(0.050, abs=0.003)
