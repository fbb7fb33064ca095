"""The outcome of a further set in a few words."""

from typing import Any

import pytest
from scipy.stats import binomtest

from service.reports.disproof import disproof
from service.reports.further_sets import further_events


def verdict(n: int = 2000, outcome: str = "alike", p: float | None = 1.0, **result: Any) -> str:
    band = None if p is None else {"consistent": False}
    served = {"scores": {}, "discarded": {}, "ece_band": band, "ece_p_value": p}
    event = {"accuracy": 0.6, "served": "entropy", "measures": {"entropy": served}}
    event |= {"shifted": outcome != "alike", "outcome": outcome, "effective": None}
    found = {"n_samples": n, "events": {"1": event, "5": event}, **result}
    said: str = further_events(found)["1"]["verdict"]
    return said


def warning(code: str, rows: int = 50) -> dict[str, Any]:
    return {"code": code, "level": "warning", "figures": {"rows": rows, "samples": 100}}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "no shift seen"),
        ({"outcome": "shifted"}, "shifted"),
        ({"outcome": "worse"}, "worse than stated"),
        ({"n": 12}, "too few samples to tell"),
        ({"p": 0.009}, "unclear"),
        ({"p": None}, "no shift seen"),
        ({"outcome": "worse", "findings": [warning("labels-shifted")]}, "labels look wrong"),
        ({"outcome": "worse", "findings": [warning("inputs-out-of-range")]}, "inputs look wrong"),
        ({"outcome": "shifted", "findings": [warning("inputs-out-of-range", 49)]}, "shifted"),
    ],
)
def test_the_outcome_of_an_event_is_said_in_a_few_words(given, says) -> None:
    assert verdict(**given) == says


@pytest.mark.parametrize(("n_errors", "expected"), [(3, False), (7, False), (8, True), (13, True)])
def test_a_broken_promise_disproves_without_a_shift(n_errors, expected) -> None:
    """At most 1 % of 257 was promised; the level is 1 % for two events together."""
    accepted = {
        "target": {"max_risk": 0.01, "delta": 0.05},
        "n_samples": 1000,
        "n_accepted": 257,
        "n_errors": n_errors,
        "coverage": 0.257,
        "effective": None,
    }
    served = {"scores": {}, "discarded": {}, "ece_band": None, "ece_p_value": None}
    event = {"accuracy": 0.76, "served": "entropy", "measures": {"entropy": served}}
    event |= {"shifted": False, "outcome": "alike", "effective": None, "accepted": [accepted]}
    found = {"n_samples": 1000, "events": {"1": event, "5": event}}
    events = further_events(found)
    assert (binomtest(n_errors, 257, 0.01, "greater").pvalue < 0.005) == expected
    assert events["1"]["disproves"] == expected
    assert (events["1"]["verdict"] == "worse than promised") == expected
    if expected:
        headline = disproof([{"name": "aug", "events": events}], 0.76, "1")
        assert f"{n_errors} of 257 " in headline


@pytest.mark.parametrize(
    ("stated", "gap_p", "expected"),
    [(0.653, 0.0001, True), (0.653, 0.02, False), (0.59, 0.0001, False), (None, 0.0001, False)],
)
def test_clearly_more_errors_than_stated_disprove(stated, gap_p, expected) -> None:
    """45 % of 600 are wrong, 41 % at least: more than a tenth above 34.7 %, not above 41 %."""
    served = {"scores": {}, "discarded": {}, "ece_band": {"consistent": True}, "ece_p_value": 0.5}
    served |= {"stated": stated, "gap_p_value": gap_p}
    event = {"accuracy": 0.55, "served": "score", "measures": {"score": served}, "accepted": []}
    event |= {"shifted": True, "outcome": "worse", "effective": None}
    found = further_events({"n_samples": 600, "events": {"1": event}})
    assert found["1"]["disproves"] == expected
    assert found["1"]["verdict"] == "worse than stated"
