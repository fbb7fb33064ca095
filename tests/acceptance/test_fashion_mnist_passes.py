"""Measures that run a network more than once, on real networks and real images."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from fashion_mnist import DATA, REQUIRES_DATA, images_and_labels
from running_service import calibrate
from scipy.stats import spearmanr

from service.child.onnx.loading import load, read_files
from service.child.onnx.single_model import SingleModel
from service.child.onnx.watchdog import Watchdog
from service.runner.child_requests import ChildRequests
from service.runner.messages.onnx_models import OnnxModelFiles
from service.runner.messages.passes import PassPlan
from service.runner.pool import RunnerPool

pytestmark = REQUIRES_DATA
FULL, LAST = "dropout_variance", "last_layer_dropout_variance"


@pytest.fixture(scope="module")
def images():
    return images_and_labels("evaluation")[0][:1000]


@pytest.fixture(scope="module")
def pool():
    with RunnerPool(device="cpu", max_processes=2) as shared:
        yield shared


def uncertainty(pool, path, plan, images):
    files = OnnxModelFiles(path)
    loaded = pool.inspect(files, top_k=(1,), passes=(plan,), trial={"input": images[:50]})
    found = pool.predict(files, loaded.resolved, {"input": images})
    return found.uncertainty[plan.measure]


def test_the_classes_spread_as_in_the_framework_that_trained_the_network(images) -> None:
    """The largest standard deviation of a class over 20 passes: 0.0496 there."""
    spreads = []
    for seed in range(10):
        model = in_this_process(PassPlan(FULL, passes=20, seed=seed), images)
        logs = np.concatenate(
            [model.passes({"input": part}, "images") for part in np.split(images, 10)]
        )
        largest = np.exp(logs).std(axis=1, ddof=1).max(axis=1)
        assert (largest > 0).all()
        spreads.append(largest.mean())
    assert np.mean(spreads) == pytest.approx(0.050, abs=0.003)


def in_this_process(plan, images) -> SingleModel:
    """Return a model as the child has it, whose single passes can be looked at."""
    requests = ChildRequests(load_timeout=1.0, run_timeout=1.0, max_classes=100, threads=2)
    files = OnnxModelFiles(DATA / "model_dropout.onnx")
    request = replace(requests.message(files, "cpu"), top_k=(1,), passes=(plan,), location="images")
    loaded = load(read_files(request.paths, {}), request, {"input": images[:20]}, Watchdog())
    assert isinstance(loaded.answering, SingleModel)
    return loaded.answering


def test_last_layer_dropout_is_full_dropout_where_there_is_no_other(pool, images, tmp_path) -> None:
    path = tmp_path / "one_dropout.onnx"
    onnx.save(with_the_last_dropout_alone(onnx.load(DATA / "model_dropout.onnx")), path)
    full = uncertainty(pool, path, PassPlan(FULL, passes=100, seed=0), images)
    last = uncertainty(pool, path, PassPlan(LAST, passes=100, seed=0), images)
    assert spearmanr(full, last).statistic >= 0.95
    assert np.mean(last / full) == pytest.approx(1, abs=0.05)
    other = uncertainty(pool, path, PassPlan(LAST, passes=100, seed=1), images)
    assert spearmanr(full, other).statistic >= 0.95


def with_the_last_dropout_alone(model: onnx.ModelProto) -> onnx.ModelProto:
    first = next(node for node in model.graph.node if node.op_type == "Dropout")
    first.op_type = "Identity"
    del first.input[1:]
    del first.output[1:]
    del first.attribute[:]
    assert sum(node.op_type == "Dropout" for node in model.graph.node) == 1
    return model


def test_the_ensembles_mean_probability_is_as_accurate_as_the_data_sheet_says(client) -> None:
    members = [(DATA / f"ensemble_{n}.onnx").read_bytes() for n in range(4)]
    answer = calibrate(
        client,
        model=members,
        calibration=(DATA / "calibration_float32.npz").read_bytes(),
        evaluation=(DATA / "evaluation_float32.npz").read_bytes(),
        config='{"name": "ensemble", "measures": ["neg_log_pmax", "ensemble_variance"]}',
    )
    resource = answer.json()
    assert resource["status"] == "succeeded", resource
    report = client.get("/report", params={"calibration": resource["id"]}).json()
    scores = report["model_scores"]["evaluation"]
    assert scores["accuracy"]["1"] == pytest.approx(0.8994, abs=0.0005)
    assert scores["nll"] == pytest.approx(0.2696, abs=0.0005)
    rows = scores["passes"]["ensemble_variance"]
    assert rows[-1]["passes"] == 4
    assert rows[-1]["accuracy"]["1"] == scores["accuracy"]["1"]
    assert rows[0]["accuracy"]["1"] == pytest.approx(0.9012, abs=0.0005)
