"""Measures that run the model several times, from the upload to the answer."""

from typing import Any

import httpx
import numpy as np
import onnx
import pytest
from model_services import (
    CASES,
    MEMBERS,
    Case,
    as_file,
    labelled_sets,
    model_file,
    predictions,
    probabilities,
    quick,
    started,
    uncertainties,
)
from onnx import helper, numpy_helper
from running_service import evaluate, refit

from howsure.client import Client
from howsure.statistics.measures.gradient import SLOPE_MEASURES
from howsure.statistics.measures.noise import keep_mask

SETS = labelled_sets()
ROWS = SETS["evaluation_inputs"][:40]


@pytest.fixture(scope="module", params=quick(CASES, "dropout", "gradient"))
def made(request, client) -> tuple[Case, dict[str, Any], dict[str, Any]]:
    """A case, its calibration, and the report."""
    resource = started(client, request.param, name="passes")
    report = client.get("/report", params={"calibration": resource["id"]}).json()
    return request.param, resource, report


def test_the_report_tells_what_fewer_passes_would_do_of_further_sets_too(client, made) -> None:
    case, resource, report = made
    n_passes = 3 if case.models == MEMBERS else 6
    for name, n_samples in (("calibration", 600), ("evaluation", 200)):
        scores = report["model_scores"][name]
        rows = scores["passes"][case.measure]
        assert [row["passes"] for row in rows] == [n for n in (1, 2, 3, 5, 6) if n <= n_passes]
        assert scores["n_samples"] == n_samples
        if case.measure in SLOPE_MEASURES:
            assert all(row["nll"] is None and row["accuracy"] is None for row in rows)
        else:
            assert all(0 < row["accuracy"]["1"] <= 1 for row in rows)
            # One pass has no spread.
            assert rows[0]["auroc"]["1"] is None
        assert 0.5 < rows[-1]["auroc"]["1"] <= 1
        if case.measure == "ensemble_variance":
            assert rows[-1]["accuracy"]["1"] == pytest.approx(scores["accuracy"]["1"], abs=1e-12)
            assert rows[-1]["nll"] == pytest.approx(scores["nll"], rel=1e-6)
    answer = evaluate(client, resource["id"], "further", as_file(SETS, "evaluation", 200)).json()
    result = answer["result"]
    further = result["events"]["1"]["measures"][case.measure]["scores"]
    evaluated = report["events"]["1"]["measures"][case.measure]["evaluation"]
    assert further == pytest.approx(evaluated, rel=1e-12)
    assert result["model_scores"]["passes"][case.measure] == rows


def test_refits_keep_it_or_leave_it_out(client, made) -> None:
    case, resource, _ = made
    kept = refit(client, resource["id"], bins=4).json()
    assert (kept["status"], kept["costs"]) == ("succeeded", resource["costs"])
    before, after = (predictions(client, x["id"], ROWS) for x in (resource, kept))
    np.testing.assert_array_equal(uncertainties(before), uncertainties(after))
    without = refit(client, resource["id"], measures=["entropy"]).json()
    assert (without["status"], without["serve"]) == ("succeeded", {"1": "entropy"})
    classes = [p["class"] for p in predictions(client, without["id"], ROWS)]
    assert classes == [p["class"] for p in before]
    back = refit(client, without["id"], measures=[case.measure]).json()
    assert (back["status"], back["serve"]) == ("succeeded", {"1": case.measure})
    other = "gradient_norm" if case.measure != "gradient_norm" else "dropout_variance"
    refused = refit(client, without["id"], measures=["entropy", other])
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    (error,) = refused.json()["errors"]
    assert (error["location"], other in error["message"]) == ("config.measures", True)


def test_the_jacobian_norm_flags_a_twentieth_of_the_calibration_set_as_adversarial(client) -> None:
    resource = started(client, CASES["Jacobian"], name="attacked")
    rows = SETS["calibration_inputs"][:600]
    answers = [
        row
        for at in range(0, 600, 20)
        for row in predictions(client, resource["id"], rows[at : at + 20])
    ]
    measures = client.get("/report", params={"calibration": resource["id"]}).json()
    threshold = measures["events"]["1"]["measures"]["jacobian_norm"]["ood_thresholds"]["0.95"]
    flags = [row["adversarial"] for row in answers]
    assert flags == (uncertainties(answers) > np.float32(threshold)).tolist()
    assert sum(flags) == 600 * 0.05
    arrays = Client(http=client).predict(resource["id"], rows)
    assert np.mean(arrays.adversarial == flags) > 0.99
    others = Client(http=client).predict(resource["id"], SETS["evaluation_inputs"]).adversarial
    deviation = np.sqrt(0.05 * 0.95 * (1 / 600 + 1 / len(others)))
    assert np.mean(others) == pytest.approx(0.05, abs=4 * deviation)


def test_only_calibrations_that_the_jacobian_norm_serves_have_the_flag(client) -> None:
    resource = started(client, CASES["Jacobian"], name="attacked", serve={"1": "entropy"})
    assert all("adversarial" not in row for row in predictions(client, resource["id"], ROWS))


def masked(number: int, *, seed: int, rates: tuple[float, float] = (0.1, 0.3)) -> onnx.ModelProto:
    """Return the dropout model with constant masks: a second way to one pass."""
    model = onnx.load_from_string(model_file("hidden_dropout_cnn.onnx"))
    for site, (rate, shape) in enumerate(zip(rates, [(1, 8, 4, 4), (1, 64)], strict=True)):
        node = next(n for n in model.graph.node if n.op_type == "Dropout")
        mask = keep_mask(shape, rate=rate, seed=seed, number=number, site=site)
        model.graph.initializer.append(numpy_helper.from_array(mask, f"mask_{site}"))
        node.CopyFrom(helper.make_node("Mul", [node.input[0], f"mask_{site}"], node.output[:1]))
    return model


def test_dropout_is_the_variance_over_models_masked_by_the_seed(client) -> None:
    resource = started(client, CASES["dropout"], name="masked", seed=3)
    answers = predictions(client, resource["id"], ROWS)
    passes = np.stack([probabilities(masked(m, seed=3), ROWS) for m in range(6)])
    spread = [np.linalg.norm(np.cov(row, rowvar=False), 2) for row in np.swapaxes(passes, 0, 1)]
    np.testing.assert_allclose(uncertainties(answers), spread, rtol=1e-4, atol=1e-12)
    classes = probabilities(masked(0, seed=3, rates=(0.0, 0.0)), ROWS).argmax(axis=1)
    assert [p["class"] for p in answers] == classes.tolist()
