"""The summary of a report: its status, and sentences that follow from its numbers."""

import copy
import json
from typing import Any

import pytest

from service.http.openapi.examples import FOLDER
from service.reports.summary import summarise

EXAMPLE = json.loads((FOLDER / "report.json").read_text())


@pytest.fixture
def report() -> dict[str, Any]:
    return copy.deepcopy(EXAMPLE)


def targets_of(report: dict[str, Any]) -> list[dict[str, Any]]:
    event = report["events"]["1"]
    selective: list[dict[str, Any]] = event["measures"][event["served"]]["selective"]
    return selective


def without_thresholds(report: dict[str, Any], missing: list[int | None]) -> None:
    first = targets_of(report)[0]
    targets_of(report)[:] = [
        {
            "target": {"max_risk": max_risk, "delta": 0.05},
            "threshold": None,
            "coverage": None,
            "n_accepted": 0,
            "n_errors": 0,
            "labels_missing": n,
        }
        for max_risk, n in zip((0.05, 0.01), missing, strict=True)
    ]
    assert first not in targets_of(report)
    report["events"]["1"]["figures"]["risk"] = None


def test_the_example_holds_its_own_summary(report) -> None:
    assert summarise(report) == report["summary"]


def test_a_certified_error_rate_makes_it_fit(report) -> None:
    found = summarise(report)
    assert found["status"] == "fit"
    assert "94.8 % of answers: at most 5 % of them wrong (95 % confidence)" in found["headline"]


def test_all_answers_are_not_a_percentage(report) -> None:
    report["events"]["1"]["figures"]["risk"]["coverage"] = 1.0
    assert "on all answers: at most 5 %" in summarise(report)["headline"]


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ([None, None], "More labels would not help. Choose a larger error rate."),
        ([1234, None], "Add about 1,300 labelled samples"),
        ([1234, 96], "Add about 96 labelled samples"),
    ],
)
def test_without_a_certified_rate_it_says_what_is_missing(report, missing, said) -> None:
    without_thresholds(report, missing)
    found = summarise(report)
    assert found["status"] == "unfit"
    assert "at most 5 % or 1 % cannot be proven" in found["headline"]
    assert said in found["headline"]


def test_a_warning_outweighs_a_certificate(report) -> None:
    report["findings"] = [{"code": "labels-shifted", "level": "notice"}]
    assert summarise(report)["status"] == "fit"
    report["findings"] = [{"code": "labels-shifted", "level": "warning"}]
    found = summarise(report)
    assert found["status"] == "warned"
    (sentence,) = found["sentences"]
    assert sentence.startswith("Fix the findings and calibrate again.")
    assert found["headline"].startswith("Do not use this calibration yet: a warning says")


@pytest.mark.parametrize(
    ("raw", "served", "after", "said"),
    [
        (True, True, 0.01, "already well calibrated"),
        (False, True, 0.01, "The rest may be chance."),
        (False, False, 0.01, "The rest is more than chance."),
        (False, True, 0.5, "shows no gain: stated probabilities are off by 50.0 %"),
        (False, False, 0.5, "The rest is more than chance."),
    ],
)
def test_the_calibration_error_is_told_from_chance(report, raw, served, after, said) -> None:
    event = report["events"]["1"]
    event["baselines"]["raw_softmax"]["evaluation_ece_band"] = {"consistent": raw}
    event["measures"][event["served"]]["evaluation_ece_band"] = {"consistent": served}
    event["figures"]["calibration_error"]["served"]["mean"] = after
    (sentence,) = [s for s in summarise(report)["sentences"] if "calibration error" in s]
    assert said in sentence
    assert "on the evaluation set, 600 samples" in sentence


def test_a_cross_validated_error_says_how_few_samples_it_is_a_mean_over(report) -> None:
    event = report["events"]["1"]
    event["figures"]["set"] = "calibration"
    event["figures"]["calibration_error"]["served"]["folds"] = 10
    (sentence,) = [s for s in summarise(report)["sentences"] if "calibration error" in s]
    assert "by cross-validation, mean of 10 folds of 60 samples; such small folds" in sentence


def test_a_shifted_further_set_is_named(report) -> None:
    assert not any("further set" in sentence for sentence in summarise(report)["sentences"])
    report["evaluations"] = [{"name": "after\u202e the move", "shifted": True}]
    sentence = summarise(report)["sentences"][-1]
    assert "after\ufffd the move" in sentence
    assert "may not hold" in sentence
