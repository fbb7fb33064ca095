"""The rows of a comparison's tables: of each event, where in the comparison the numbers are."""

from collections.abc import Mapping
from typing import Any

from service.web.differences import verdict_of

Json = Mapping[str, Any]

# Of what is compared, its heading, and the score that explains it.
DIFFERENCES = {
    "nll": "Negative log-likelihood",
    "brier": "Brier score",
    "accuracy": "Share that is right",
}


def compared_events(found: Json) -> list[dict[str, Any]]:
    """Return them in the order of k: an event of one calibration is shown, if not of all."""
    ks = {k for report in found["calibrations"] for k in report["events"]}
    return [_event(k, found) for k in sorted(ks, key=int)]


def _event(k: str, found: Json) -> dict[str, Any]:
    columns = [_column(k, at, report) for at, report in enumerate(found["calibrations"])]
    compared = [comparison["events"].get(k) for comparison in found["comparisons"]]
    return {
        "k": k,
        "columns": columns,
        "is_judged": any(column and column["evaluation"] for column in columns),
        "differences": [
            (heading, [_difference(k, at, event, score) for at, event in enumerate(compared)])
            for score, heading in DIFFERENCES.items()
            if any(event and score in event["differences"] for event in compared)
        ],
    }


def _column(k: str, at: int, report: Json) -> dict[str, Any] | None:
    event = report["events"].get(k)
    if event is None:
        return None
    place = ("calibrations", at, "events", k)
    served = event["served"]
    table = (*place, "measures", served)
    row = next(i for i, row in enumerate(event["comparison"]) if row["served"])
    return {
        "figures": event["figures"],
        "at": (*place, "figures"),
        "served": served,
        "cost": (*place, "comparison", row),
        "bins": (*place, "measures", served, "quantile_bins"),
        "nll": (*table, "scores", "nll"),
        "evaluation": (*table, "evaluation") if event["measures"][served]["evaluation"] else None,
        "right": ("calibrations", at, "model_scores", "evaluation", "accuracy", k),
    }


def _difference(k: str, at: int, event: Json | None, score: str) -> dict[str, Any] | None:
    """Return a cell: where a difference from the first is, and what it says."""
    found = None if event is None else event["differences"].get(score)
    if event is None or found is None:
        return None
    return {
        "at": ("comparisons", at, "events", k, "differences", score),
        "verdict": verdict_of(found, score),
        "of": "samples" if event["paired"] else "folds",
    }
