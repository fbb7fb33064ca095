"""Stress sets: the promise by kind of change, quartiles, and what is said of both."""

import numpy as np
import pytest
from report_documents import typed

from howsure.report.stress import QUARTILES, Stress, quartile_rows
from howsure.report.words.stress import stress_sentences


def further(name, kind, intensity, *, errors, accepted=500, role="stress", brier=0.2) -> dict:
    """A set of 1,000 samples; an error rate of 5 % is promised."""
    share = errors / accepted
    counts = {
        "n_samples": 1000,
        "n_accepted": accepted,
        "n_errors": errors,
        "coverage": accepted / 1e3,
    }
    target = {"target": {"max_risk": 0.05, "delta": 0.05}, "threshold": 0.5}
    rate = {"risk": share, "risk_interval": [share, share]}
    scores = {"brier": brier, "nll": None, "ece_15": 0.1, "auroc": 0.9, "aurc": 0.1}
    method = {"scores": scores, "intervals": {}, "difference": {}, "above": [], "hits_above": []}
    population = {"distance": 0.1, "p_value": 0.1, "auroc": 0.5}
    event = {
        "accuracy": 0.8, "served": "entropy", "shifted": False, "scores": None, "discarded": {},
        "population": population, "stated": 0.8, "accepted": [target | counts | rate],
        "unpromised": None, "disproves": False, "verdict": "alike",
        "methods": {"served": method, "raw_softmax": method},
        "best": {"better": "unclear", "method": "raw_softmax"},
    }  # fmt: skip
    histogram = {"edges": [0.0, 1.0], "counts": [1], "calibration_counts": [1]}
    return {
        "name": name, "role": role, "type": kind, "intensity": intensity, "labelled": True,
        "finished_at": None, "samples": 1000, "sha256": "0" * 64, "shifted": False,
        "outcome": "alike", "findings": [], "sentence": "", "events": {"1": event},
        "confidence": histogram, "entropy": None, "above_confidence": [], "by_confidence": None,
    }  # fmt: skip


@pytest.fixture
def stress(client, shelf):
    """Return a function that puts further sets into a report."""
    shelf("quick-digits")
    report = client.get("/report", params={"calibration": "quick-digits"}).json()
    return lambda *sets: Stress.of(typed(report | {"evaluations": list(sets)}))


def test_the_promise_is_broken_from_where_it_stays_broken(stress, golden) -> None:
    plain = further("plain", None, 0.0, errors=20)
    blur = [
        further(f"blur {at}", "blur", float(at), errors=e) for at, e in ((1, 60), (2, 20), (3, 90))
    ]
    turn = [further(f"turn {at}", "turn", float(at), errors=e) for at, e in ((1, 25), (3, 300))]
    traffic = further("traffic", "turn", 2.0, errors=400, role="traffic")
    kept = [further("kept", "noise", 1.0, errors=25)]
    texts = [
        " ".join(stress_sentences(stress(*sets)))
        for sets in ((plain, *blur, *turn, traffic), (plain, *kept), (traffic,))
    ]
    golden("stress.txt", "\n".join(texts))


def test_quartiles_are_those_of_numpy(stress) -> None:
    values = [0.1, 0.2, 0.4, 0.7, 0.9]
    sets = [
        further(f"{at}", f"{at}", 1.0, errors=1, brier=value) for at, value in enumerate(values)
    ]
    rows = [dict(zip(QUARTILES, row, strict=True)) for row in quartile_rows(stress(*sets))]
    (row,) = [one for one in rows if (one["score"], one["method"]) == ("brier", "served")]
    inner = [row[name] for name in ("least", "lower", "median", "upper", "most")]
    assert inner == pytest.approx(np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))
    assert (row["sets"], row["intensity"]) == (5, 1.0)
    assert not [one for one in rows if one["score"] == "nll"]
