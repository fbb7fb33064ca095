"""The outcome of a further set in a few words."""

from typing import Any

import pytest
from scipy.stats import binomtest

from howsure.report.further_set import CountedEvents, FurtherEvent
from howsure.report.further_sets import further_events
from howsure.report.plain_parts import typed_part
from howsure.report.words.disproof import NamedEvents, disproof

ALIKE = {"distance": 0.0, "p_value": 1.0, "auroc": 0.5}
BAND = {"score": "ece_15", "observed": 0.0, "median": 0.0, "upper": 0.0, "resamples": 999}
BAND |= {"refitted": False, "consistent": True}  # which follows from the others


def first_of(
    events: str = "15", *, n: int = 2000, findings: Any = (), served: Any = None, **about: Any
) -> FurtherEvent:
    """Return what is reported of Top-1 of a set with these events, which are alike."""
    table = dict.fromkeys(("ece_band", "ece_p_value", "stated", "right", "gap_p_value"))
    table |= {"measure": "entropy", "column": "entropy", "scores": {}, "discarded": {}}
    table |= {"population": ALIKE, "occupancy": [n]} | (served or {})
    event = {"accuracy": 0.6, "outcome": "alike", "effective": None, "served": "entropy"} | about
    event |= {"shifted": event["outcome"] != "alike", "measures": {"entropy": table}}
    result = {"n_samples": n, "events": dict.fromkeys(events, event), "findings": findings}
    return further_events(typed_part(result, CountedEvents))["1"]


def warning(code: str, rows: int = 50) -> list[dict[str, Any]]:
    return [
        {"code": code, "level": "warning", "message": "", "figures": {"rows": rows, "samples": 100}}
    ]


def off(p: float) -> dict[str, Any]:
    return {"ece_band": BAND | {"observed": 0.1}, "ece_p_value": p}


VERDICTS = [
    ({"served": off(1.0)}, "no shift seen"),
    ({"served": off(1.0), "outcome": "shifted"}, "shifted"),
    ({"served": off(1.0), "outcome": "worse"}, "worse than stated"),
    ({"served": off(1.0), "n": 12}, "too few samples to tell"),
    ({"served": off(0.009)}, "unclear"),
    ({}, "no shift seen"),
    ({"outcome": "worse", "findings": warning("labels-shifted")}, "labels look wrong"),
    ({"outcome": "worse", "findings": warning("inputs-out-of-range")}, "inputs look wrong"),
    ({"outcome": "shifted", "findings": warning("inputs-out-of-range", 49)}, "shifted"),
]


@pytest.mark.parametrize(("about", "verdict"), VERDICTS)
def test_the_outcome_of_an_event_is_said_in_a_few_words(about, verdict) -> None:
    assert first_of(**about).verdict == verdict


@pytest.mark.parametrize(("n_errors", "expected"), [(3, False), (7, False), (8, True), (13, True)])
def test_a_broken_promise_disproves_without_a_shift(n_errors, expected) -> None:
    """At most 1 % of 257 was promised; the level is 1 % for two events together."""
    accepted = {"target": {"max_risk": 0.01, "delta": 0.05}, "n_samples": 1000, "n_accepted": 257}
    accepted |= {"n_errors": n_errors, "coverage": 0.257, "effective": None, "threshold": 0.1}
    event = first_of(n=1000, accuracy=0.76, accepted=[accepted])
    assert (binomtest(n_errors, 257, 0.01, "greater").pvalue < 0.005) == expected
    assert event.disproves == expected
    assert (event.verdict == "worse than promised") == expected
    if expected:
        headline = disproof([NamedEvents("aug", {"1": event})], 0.76, "1")
        assert f"{n_errors} of 257 " in headline


STATED = [(0.653, 0.0001, True), (0.653, 0.02, False), (0.59, 0.0001, False), (None, 0.0001, False)]


@pytest.mark.parametrize(("stated", "gap_p", "expected"), STATED)
def test_clearly_more_errors_than_stated_disprove(stated, gap_p, expected) -> None:
    """45 % of 600 are wrong, 41 % at least: more than a tenth above 34.7 %, not above 41 %."""
    served = {"ece_band": BAND, "ece_p_value": 0.5}
    served |= {"stated": stated, "gap_p_value": gap_p}
    event = first_of("1", n=600, accuracy=0.55, outcome="worse", served=served)
    assert event.disproves == expected
    assert event.verdict == "worse than stated"
