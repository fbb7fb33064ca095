"""Further sets in a report, and whether one disproves the calibration for data like it."""

from collections.abc import Mapping, Sequence
from typing import Any

import models
from howsure.statistics.shift.verdict import SHIFT_LEVEL
from service.calibrations.findings import with_docs
from service.reports.accepted import contradicts, share_of

Event = Mapping[str, Any]


def further_set(found: models.Evaluation, row: models.Calibration) -> dict[str, Any]:
    """Return the scores of the served tables on a finished further set."""
    result = found.result or {}
    return {
        "name": found.name,
        "labelled": found.labelled,
        "finished_at": None if found.finished_at is None else found.finished_at.isoformat(),
        "samples": result["n_samples"],
        "shifted": result["shifted"],
        "outcome": result.get("outcome"),
        "findings": [with_docs(finding) for finding in result.get("findings", ())],
        "sentence": result["sentence"],
        "events": further_events(result, row.accuracy or {}, row.data),
        **{name: result.get(name) for name in ("confidence", "entropy", "above_confidence")},
        "by_confidence": (result["model_scores"] or {}).get("by_confidence"),
    }


def further_events(
    result: Mapping[str, Any], accuracy: Mapping[str, float], data: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the events of a further set.

    ``accuracy`` by event and ``data`` are those of the calibration.
    """
    events = {}
    for k, event in result["events"].items():
        served = event["measures"][event["served"]]
        known = share_of(round(accuracy[k] * data["samples"]), data["samples"])
        events[k] = {name: event[name] for name in ("accuracy", "served", "shifted")}
        events[k] |= {name: served[name] for name in ("scores", "discarded")}
        events[k]["accepted"] = event.get("accepted", [])
        events[k]["disproves"] = _disproves(
            event, result["n_samples"], known, level=SHIFT_LEVEL / len(result["events"])
        )
    return events


def _disproves(event: Event, n_samples: int, known: Event | None, *, level: float) -> bool:
    """Tell whether a set is shifted, and the answers on it are clearly worse than stated.

    Harder data may have fewer correct answers and still correct probabilities, which does not
    disprove a calibration.
    """
    if not event["shifted"] or event["accuracy"] is None:
        return False
    accepted: Sequence[Event] = event.get("accepted", [])
    if any(contradicts(found, found["target"]["max_risk"]) for found in accepted):
        return True
    here = share_of(round(event["accuracy"] * n_samples), n_samples)
    if here is None or known is None or here["interval"][1] >= known["interval"][0]:
        return False
    return _is_miscalibrated(event["measures"][event["served"]], level)


def _is_miscalibrated(served: Event, level: float) -> bool:
    """Repeat the test of `shift_verdict`; assume it where samples with weights are not tested."""
    band, p_value = served["ece_band"], served["ece_p_value"]
    if band is None or p_value is None:
        return True
    return not band["consistent"] and p_value < level
