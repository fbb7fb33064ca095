"""The four figures that a report begins with: each with its interval, or spread, and its n."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from service.core.bins.prior import BetaPrior
from service.core.intervals import BinomialSample
from service.core.intervals.clopper_pearson import clopper_pearson

LEVEL = 0.95
ERROR, DETECTION, RAW = "ece_15", "auroc", "raw_softmax"
# Exact intervals ask for none.
_NO_PRIOR = BetaPrior(0.5, 1.0, degenerate=False)


def report_figures(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return how often it is right, how well that is known, and what it costs to go by it.

    Accuracy and risk are of the calibration set, with exact intervals; the calibration error and
    the detection of errors are cross-validated, with the spread between the folds.
    """
    served = event["measures"].get(event["served"])
    bins = [] if served is None else served["bins"]
    count, hits = sum(found["count"] for found in bins), sum(found["hits"] for found in bins)
    raw = event["baselines"].get(RAW)
    return {
        "level": LEVEL,
        "accuracy": _share(hits, count),
        "calibration_error": {
            "score": ERROR,
            "raw": _score(raw, ERROR),
            "served": _score(served, ERROR),
        },
        "error_detection": {"score": DETECTION, "served": _score(served, DETECTION)},
        "risk": None if served is None else _risk(served.get("selective", [])),
    }


def _share(hits: int, count: int) -> dict[str, Any] | None:
    if count == 0:
        return None
    sample = BinomialSample(np.array([hits]), np.array([count]), _NO_PRIOR)
    lower, upper = clopper_pearson(sample, LEVEL)
    return {
        "value": hits / count,
        "interval": [float(lower[0]), float(upper[0])],
        "n_samples": count,
    }


def _score(judged: Mapping[str, Any] | None, name: str) -> dict[str, Any] | None:
    found = None if judged is None else judged["scores"].get(name)
    if found is None or found["mean"] is None:
        return None
    return {key: found[key] for key in ("mean", "std", "folds")}


def _risk(selective: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the first error rate that is kept to, and what is accepted then."""
    for found in selective:
        if found["threshold"] is None or not found["n_accepted"]:
            continue
        target = {name: found["target"][name] for name in ("max_risk", "delta")}
        accepted = {name: found[name] for name in ("coverage", "n_accepted", "n_errors")}
        return target | accepted | (_share(found["n_errors"], found["n_accepted"]) or {})
    return None
