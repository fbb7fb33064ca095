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


def test_a_set_alone_cannot_tell_whether_the_model_was_trained_on_it(report) -> None:
    unless = "(95 % confidence), if the model was not trained on these samples."
    assert unless not in summarise(report)["headline"]
    report["provenance"]["data"]["evaluation_samples"] = None
    assert summarise(report)["headline"].endswith(unless)


@pytest.mark.parametrize("design", [[], ["weight"], ["group", "weight"]])
def test_the_test_is_approximate_with_weights_and_groups(report, design) -> None:
    report["provenance"]["data"]["design"] = design
    assert ("(about 95 % confidence)" in summarise(report)["headline"]) == bool(design)


def test_all_answers_are_not_a_percentage(report) -> None:
    report["events"]["1"]["figures"]["risk"]["coverage"] = 1.0
    assert "on all answers: at most 5 %" in summarise(report)["headline"]


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (
            [None, None],
            "These samples do not tell how many more would prove it. Add labelled samples, or",
        ),
        (
            [1234, None],
            "Add about 1,300 labelled samples like these to prove 5 %, better",
        ),
        (
            [1234, 96],
            "Add about 96 labelled samples like these to prove 1 %, better",
        ),
    ],
)
def test_without_a_certified_rate_it_says_what_is_missing(report, missing, said) -> None:
    without_thresholds(report, missing)
    found = summarise(report)
    assert found["status"] == "unfit"
    assert "at most 5 % or 1 % cannot be proven" in found["headline"]
    assert said in found["headline"]


@pytest.mark.parametrize(
    ("counts", "kind", "expected"),
    [
        ([576, *[0] * 8, 24], "inputs", True),
        ([560, *[0] * 8, 40], "inputs", False),
        ([576, 24], "pairs", False),
    ],
)
def test_an_error_rate_that_needs_no_model_is_told(report, counts, kind, expected) -> None:
    """At most 5 % was promised; 4 % are of another class than the first."""
    report["provenance"]["data"] |= {"class_counts": counts, "kind": kind}
    found = summarise(report)
    said = "Always answering “0” would be wrong in 4.0 %"
    assert found["sentences"][0].startswith(said) == expected
    assert found["status"] == "fit"
    report["provenance"]["data"]["design"] = ["weight"]
    assert not any(said in one for one in summarise(report)["sentences"])


def test_a_rate_that_is_clearly_out_of_reach_is_not_told_to_need_labels(report) -> None:
    without_thresholds(report, [None, None])
    for found in targets_of(report):
        found["out_of_reach"] = True
    said = "At the error rates seen here, more labels would not prove it. Choose a larger"
    assert said in summarise(report)["headline"]
    targets_of(report)[0]["out_of_reach"] = False
    assert said not in summarise(report)["headline"]


def test_a_model_that_is_mostly_wrong_is_not_told_to_accept_more_errors(report) -> None:
    without_thresholds(report, [None, None])
    report["events"]["1"]["accuracy"] = 0.25
    headline = summarise(report)["headline"]
    assert "Only 25.0 % of answers are correct: check the labels" in headline
    assert "larger error rate" not in headline


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
        (False, True, 0.01, "is no more than chance explains."),
        (False, False, 0.01, "is more than chance explains."),
        (False, True, 0.5, "shows no gain: stated probabilities are off by 50.0 %"),
        (False, False, 0.5, "is more than chance explains."),
        (False, None, 0.01, "is not tested for chance, because samples have weights or groups."),
    ],
)
def test_the_calibration_error_is_told_from_chance(report, raw, served, after, said) -> None:
    event = report["events"]["1"]
    own = event["baselines"]["raw_softmax"]
    own |= {"evaluation_ece_band": {"consistent": raw, "observed": 0.03}, "difference": {}}
    band = None if served is None else {"consistent": served}
    event["measures"][event["served"]]["evaluation_ece_band"] = band
    event["figures"]["calibration_error"]["served"]["mean"] = after
    (sentence,) = [s for s in summarise(report)["sentences"] if "calibration error" in s]
    assert said in sentence
    assert "on the evaluation set, 600 samples" in sentence


@pytest.mark.parametrize(("upper", "few"), [(0.05, False), (0.051, True)])
def test_few_samples_do_not_show_that_a_model_is_calibrated(report, upper, few) -> None:
    raw = report["events"]["1"]["baselines"]["raw_softmax"]
    raw["evaluation_ece_band"] = {"consistent": True, "upper": upper, "observed": 0.034}
    raw["difference"] = {}
    (sentence,) = [s for s in summarise(report)["sentences"] if "calibration error" in s]
    assert sentence.startswith("Too few samples to tell whether the model's own") == few
    # The error and its limit are of the same samples: without a fit, of all together.
    assert "off by 3.4 % on average" in sentence
    assert ("By chance alone it may be 5.1 %." in sentence) == few
    assert ("already well calibrated" in sentence) != few


@pytest.mark.parametrize(
    ("mean", "said"),
    [
        (0.2, "Stated probabilities are off by 50.0 %"),
        (0.01, "Calibration shows no gain: stated probabilities"),
        (-0.2, "By the loss, calibration makes probabilities worse: stated probabilities"),
    ],
)
def test_a_clear_loss_decides_whether_calibration_gains(report, mean, said) -> None:
    """The error over few samples may rise where each probability is better."""
    event = report["events"]["1"]
    event["figures"]["calibration_error"]["served"]["mean"] = 0.5
    found = event["baselines"]["raw_softmax"]["difference"]["evaluation"]["nll"]
    found |= {"mean": mean, "standard_error": 0.05}
    (sentence,) = [s for s in summarise(report)["sentences"] if "calibration error" in s]
    assert sentence.startswith(said)


def test_a_cross_validated_error_says_how_few_samples_it_is_a_mean_over(report) -> None:
    event = report["events"]["1"]
    event["figures"]["set"] = "calibration"
    event["figures"]["calibration_error"]["served"]["folds"] = 10
    (sentence,) = [s for s in summarise(report)["sentences"] if "calibration error" in s]
    assert "by cross-validation, mean of 10 folds of 60 samples; such small folds" in sentence


def counts(n_errors: int, n_accepted: int = 500) -> dict[str, Any]:
    found = {"n_samples": 600, "n_accepted": n_accepted, "n_errors": n_errors}
    return {**found, "coverage": n_accepted / 600, "effective": None}


def active(report: dict[str, Any], chosen_by: dict[str, float], **evaluation: int) -> None:
    """Let an operating point be active that accepts 527 of 600 answers, 3 of them wrong."""
    seen = {**counts(3, 527), "coverage": 527 / 600, "evaluation": evaluation or None}
    report["operating_point"] = {
        "name": "night-shift",
        "threshold": 0.1,
        "chosen_by": chosen_by,
        "consequences": seen,
    }


@pytest.mark.parametrize(
    ("n_errors", "status", "said"),
    [
        (20, "fit", "83.3 % of answers are accepted: 20 of 500 are wrong, 4.0 % (2.5 % to 6.1 %)."),
        (30, "fit", "6.0 % (4.1 % to 8.5 %), more than promised, which may be chance."),
        (
            40,
            "disproved",
            "40 of 500 accepted answers are wrong, 8.0 % (5.8 % to 10.7 %). At most 5 %",
        ),
    ],
)
def test_the_evaluation_set_is_heard_on_the_promise(report, n_errors, status, said) -> None:
    report["events"]["1"]["figures"]["risk"]["evaluation"] = counts(n_errors)
    found = summarise(report)
    assert found["status"] == status
    assert said in " ".join([found["headline"], *found["sentences"]])
    assert found["headline"].startswith("Fit for") == (status == "fit")


def test_the_headline_is_about_the_active_operating_point(report) -> None:
    active(report, {"max_risk": 0.01, "delta": 0.05}, **counts(10, 537))
    found = summarise(report)
    assert found["status"] == "fit"
    assert found["headline"] == (
        "Fit for automatic use with the active operating point “night-shift” on 87.8 % of answers: "
        "at most 1 % of them wrong (95 % confidence)."
    )
    assert found["sentences"][0] == (
        "The active operating point “night-shift” accepts 87.8 % of answers: on the calibration "
        "set, 3 of 527 are wrong, 0.57 % (0.12 % to 1.65 %); on the evaluation set, 10 of 537 are "
        "wrong, 1.9 % (0.9 % to 3.4 %), more than promised, which may be chance."
    )
    assert "For an error rate of at most 5 %, 94.8 % of answers can" in found["sentences"][1]
    active(report, {"max_risk": 0.01, "delta": 0.05}, **counts(30, 537))
    found = summarise(report)
    assert found["status"] == "disproved"
    assert "“night-shift”: on the evaluation set, 30 of 537 accepted" in found["headline"]


def test_an_operating_point_without_a_test_promises_nothing(report) -> None:
    active(report, {"coverage": 0.87})
    found = summarise(report)
    assert found["status"] == "unknown"
    assert "“night-shift” was not tested: it accepts 87.8 % of answers" in found["headline"]
    assert "3 of 527 are wrong" in found["sentences"][0]


def further(name: str, **event: Any) -> dict[str, Any]:
    found = {"accuracy": 0.5, "scores": {"ece_15": 0.4}, "accepted": [], "disproves": False}
    return {"name": name, "shifted": True, "outcome": "shifted", "events": {"1": found | event}}


BROKEN = {"target": {"max_risk": 0.05, "delta": 0.05}, **counts(60)}


def test_a_further_set_that_disproves_it_comes_first(report) -> None:
    promised = {"target": {"max_risk": 0.05, "delta": 0.05}, **counts(480, 480)}
    report["evaluations"] = [
        further("dusk", disproves=True),
        further("noisy\u202e", disproves=True, accuracy=0.025, accepted=[promised]),
        further("other camera"),
    ]
    found = summarise(report)
    assert found["status"] == "shifted"
    assert found["headline"] == (
        "Do not use for data like “noisy\ufffd” and “dusk”: 97.5 % of answers are wrong on "
        "“noisy\ufffd”, 5.3 % on the calibration set."
    )
    assert "For data like the calibration set: Fit for automatic use" in found["sentences"][0]
    accepted = "answers accepted for an error rate of at most 5 %"
    assert f"480 of 480 {accepted} are wrong, 100.00 %" in found["sentences"][1]
    assert "probabilities are off by 40.0 %" in found["sentences"][2]
    assert "“other camera” differs" in found["sentences"][-1]


@pytest.mark.parametrize(
    ("n_errors", "max_risk", "said"),
    [
        (32, 0.05, "32 of 500 accepted answers are wrong, 6.4 % (4.4 % to 8.9 %), more than"),
        (25, 0.05, ""),
        (32, 0.01, ""),
    ],
)
def test_a_further_set_with_more_errors_than_promised_is_named(
    report, n_errors, max_risk, said
) -> None:
    """Only at the promised error rate; the table of further sets has the others."""
    promised = {"target": {"max_risk": max_risk, "delta": 0.05}, **counts(n_errors)}
    report["evaluations"] = [further("december", accepted=[promised]) | {"shifted": False}]
    found = summarise(report)
    assert found["status"] == "fit"
    told = [one for one in found["sentences"] if "december" in one]
    assert len(told) == bool(said)
    assert not said or told[0].startswith(f"On the further set “december”, {said}")
    # A set that is doubted or disproves it is told otherwise.
    report["evaluations"][0]["events"]["1"]["disproves"] = True
    assert summarise(report)["status"] == "shifted"


@pytest.mark.parametrize(
    ("outcome", "verdict", "said"),
    [
        ("worse", "worse than stated", "answers are right less often than stated: 55.0 % are"),
        ("better", "better than stated", "answers are right more often than stated: 55.0 % are"),
        ("alike", "unclear", "“later” is unclear: 55.0 % are right, 65.3 % stated."),
        ("alike", "no shift seen", ""),
    ],
)
def test_what_a_further_set_means_is_said_by_its_outcome(report, outcome, verdict, said) -> None:
    found = further("later", accuracy=0.55, stated=0.653, verdict=verdict)
    report["evaluations"] = [found | {"outcome": outcome, "shifted": outcome != "alike"}]
    told = [one for one in summarise(report)["sentences"] if "later" in one]
    assert len(told) == bool(said)
    assert not said or said in told[0]


def test_a_shifted_further_set_is_named(report) -> None:
    assert not any("further set" in sentence for sentence in summarise(report)["sentences"])
    report["evaluations"] = [further("after\u202e the move", shifted=True)]
    sentence = summarise(report)["sentences"][-1]
    assert "after\ufffd the move" in sentence
    assert "may not hold" in sentence


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (
            {"accuracy": 0.946, "stated": 0.989},
            "94.6 % of answers are right, and 98.9 % are stated.",
        ),
        ({"accuracy": 0.946}, "94.6 % of answers are right."),
        ({"accuracy": 0.9, "stated": 0.95}, "10.0 % of answers are wrong, 5.3 % on the calibr"),
        (
            {"accuracy": 0.946, "stated": 0.989, "accepted": [BROKEN]},
            "60 of 500 accepted answers are wrong, 12.0 % (9.3 % to 15.2 %). At most 5 % was promi",
        ),
    ],
)
def test_the_reason_is_what_went_wrong(report, event, reason) -> None:
    report["evaluations"] = [further("later", disproves=True, **event)]
    assert f"Do not use for data like “later”: {reason}" in summarise(report)["headline"]


def test_a_broken_promise_comes_before_other_reasons(report) -> None:
    report["evaluations"] = [
        further("stated", disproves=True, accuracy=0.94, stated=0.99),
        further("broken", disproves=True, accuracy=0.945, accepted=[BROKEN]),
    ]
    found = summarise(report)["headline"]
    assert found.startswith("Do not use for data like “broken” and “stated”: 60 of 500 accepted")


def test_equal_shares_are_no_reason(report) -> None:
    scores = {"ece_15": 0.051}
    off = {"accuracy": 0.63, "stated": 0.629, "scores": scores, "verdict": "not as stated"}
    report["evaluations"] = [further("later", **off)]
    (said,) = (line for line in summarise(report)["sentences"] if "“later”" in line)
    assert said.endswith("stated probabilities are off by 5.1 % on average.")


@pytest.mark.parametrize("phase", ["evaluation", "cross_validation"])
def test_a_model_whose_loss_is_clearly_larger_is_not_called_calibrated(report, phase) -> None:
    """The calibration error of some hundred samples shows less than paired losses."""
    raw = report["events"]["1"]["baselines"]["raw_softmax"]
    raw["evaluation_ece_band"] = {"consistent": True, "upper": 0.04, "observed": 0.026}
    for error, is_clear in ((0.001, True), (0.003, False)):
        nll = {"mean": 0.004, "standard_error": error, "pairs": 600}
        raw["difference"] = {phase: {"nll": nll}}
        (sentence,) = [s for s in summarise(report)["sentences"] if "calibration error" in s]
        assert ("already well calibrated" in sentence) != is_clear
        assert sentence.startswith("Stated probabilities are clearly better than") == is_clear
        assert "off by 2.6 % on average, no more than chance explains" in sentence
