"""The outcome of a further set in a few words."""

from typing import Any

import pytest

from service.reports.further_sets import further_events


def verdict(n: int = 2000, outcome: str = "alike", p: float | None = 1.0, **result: Any) -> str:
    band = None if p is None else {"consistent": False}
    served = {"scores": {}, "discarded": {}, "ece_band": band, "ece_p_value": p}
    event = {"accuracy": 0.6, "served": "entropy", "measures": {"entropy": served}}
    event |= {"shifted": outcome != "alike", "outcome": outcome}
    found = {"n_samples": n, "events": {"1": event, "5": event}, **result}
    said: str = further_events(found, {"1": 0.6, "5": 0.6}, 1000)["1"]["verdict"]
    return said


def warning(code: str) -> dict[str, str]:
    return {"code": code, "level": "warning"}


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
    ],
)
def test_the_outcome_of_an_event_is_said_in_a_few_words(given, says) -> None:
    assert verdict(**given) == says
