"""Further sets with samples whose class is none of the model's: Ovadia et al. 2019, Figure 4."""

from typing import Any

import httpx
import numpy as np
import pytest
from bins_documents import digits_set
from refusals import assert_refused
from report_scenarios import activate
from running_service import DIGITS_PARTS, calibrate, calibrated, codes, evaluate, npz, report_of

EVALUATION = digits_set()
NOISE = np.random.default_rng(3).integers(0, 17, (200, 64)).astype(EVALUATION["inputs"].dtype)
INPUTS = np.concatenate([EVALUATION["inputs"], NOISE])
LABELS = np.concatenate([EVALUATION["labels"], np.full(200, -1)])
OF_DIGITS = slice(0, 600)


@pytest.fixture(scope="module")
def digits_alone(client) -> dict[str, Any]:
    """A calibration, its digits as a further set, and the same among pictures of noise."""
    calibrated(client, {"name": "unknown", "top_k": [1, 5]}, **DIGITS_PARTS)
    return dict(evaluate(client, "unknown", "digits", npz(**EVALUATION)).json()["result"])


@pytest.fixture(scope="module")
def mixed(client, digits_alone) -> dict[str, Any]:
    sent = evaluate(client, "unknown", "mixed", npz(inputs=INPUTS, labels=LABELS)).json()
    assert sent["status"] == "succeeded", sent["error"]
    return dict(sent)


def test_answers_to_other_samples_are_counted_as_wrong(client, digits_alone, mixed) -> None:
    body = {"calibration": "unknown", "inputs": INPUTS.tolist()}
    ranked = client.post("/predict", json=body).json()["predictions"]
    answers = np.array([[one["class"] for one in row["classes"]] for row in ranked])
    hits = answers == LABELS[:, None]
    result, scores = mixed["result"], mixed["result"]["model_scores"]
    for k in (1, 5):
        assert result["events"][str(k)]["accuracy"] == hits[:, :k].any(axis=1).mean()
    accepted = result["events"]["1"]["accepted"]
    alone = digits_alone["events"]["1"]["accepted"]
    for both, before in zip(accepted, alone, strict=True):
        more = both["n_accepted"] - before["n_accepted"]
        assert both["n_errors"] - before["n_errors"] == more
    assert mixed["data"]["none_of_these"] == 200
    assert scores["nll"] is None
    assert scores["brier_multiclass"] > digits_alone["model_scores"]["brier_multiclass"]
    assert not codes(result)
    assert all(row["label"] >= 0 for row in result["mislabelled"]["1"])


def test_the_report_and_operating_points_count_them(client, mixed) -> None:
    point = activate(client, "unknown", coverage=0.9)
    counted = point["consequences"]["further"]["mixed"]
    assert counted["n_samples"] == len(LABELS)
    report = report_of(client, "unknown")
    (row,) = [one for one in report["evaluations"] if one["name"] == "mixed"]
    assert (row["samples"], row["none_of_these"]) == (800, 200)
    unpromised = row["events"]["1"]["unpromised"]
    assert unpromised["n_errors"] == counted["n_errors"]
    assert (row["outcome"], row["events"]["1"]["disproves"]) == ("shifted", True)
    assert "“mixed”" in report["summary"]["headline"]
    page = client.get("/report", params={"calibration": "unknown", "format": "html"})
    assert page.status_code == httpx.codes.OK
    assert ">200</span> of none of the classes" in page.text
    text = client.get("/report", params={"calibration": "unknown", "format": "markdown"}).text
    assert "800 samples, labelled, 200 of none of the classes." in text


WRONG_LABELS = [("labels-shifted", (LABELS[OF_DIGITS] + 1) % 10), (None, LABELS[OF_DIGITS])]


@pytest.mark.parametrize(("code", "labels"), WRONG_LABELS)
def test_labels_are_checked_by_the_samples_of_classes(client, mixed, code, labels) -> None:
    content = npz(inputs=INPUTS, labels=np.concatenate([labels, LABELS[600:]]))
    result = evaluate(client, "unknown", f"checked {code}", content).json()["result"]
    assert codes(result) == ([] if code is None else [code])
    if code:
        (finding,) = result["findings"]
        assert finding["message"].startswith("Samples whose class is one of the model's: ")
        assert finding["figures"]["samples"] == 600


def test_a_set_of_other_samples_alone(client, mixed) -> None:
    noise = npz(inputs=NOISE, labels=LABELS[600:])
    result = evaluate(client, "unknown", "noise", noise).json()["result"]
    assert result["events"]["1"]["accuracy"] == 0
    assert (result["findings"], result["mislabelled"]["1"]) == ([], [])
    assert client.get("/pages/calibrations/unknown/shift").status_code == httpx.codes.OK


def test_minus_one_is_refused_elsewhere(client, mixed) -> None:
    content = npz(inputs=INPUTS, labels=LABELS)
    model = DIGITS_PARTS["model"]
    of_evaluation = calibrate(client, **DIGITS_PARTS, evaluation=content)
    assert_refused(calibrate(client, model=model, calibration=content), None, "-1")
    assert_refused(of_evaluation, None, "-1")
    below = npz(inputs=INPUTS, labels=np.where(LABELS < 0, -2, LABELS))
    assert_refused(evaluate(client, "unknown", "below", below), None, "-2")
    pairs = {"score": np.linspace(0, 1, 60), "correct": np.arange(60) % 2}
    made = calibrated(client, {"bins": 2, "folds": 2}, full=True, calibration=npz(**pairs))
    wrong = npz(score=pairs["score"], correct=pairs["correct"] - 1)
    assert_refused(evaluate(client, made["id"], "wrong", wrong), None, "-1")
