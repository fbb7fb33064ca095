"""A calibration on other sets: its accepted answers, and whether they disprove it."""

from collections.abc import Mapping, Sequence
from typing import Any

from scipy.special import betainc

import models
from howsure.report.shifts import OPENINGS, USUAL_LEVEL
from howsure.shares import excess_in_words, percent_with_interval
from howsure.statistics.bins.intervals import proportion_interval
from howsure.statistics.effective import EffectiveShare
from howsure.statistics.findings import LABEL_FINDINGS, NEAR_CHANCE, OUT_OF_RANGE, REVERSED
from howsure.statistics.shift.verdict import (
    SHIFT_LEVEL,
    is_too_small,
    miscalibration_p_value,
)
from service.calibrations.findings import with_docs
from service.reports.numbers import count, percent, share
from service.storage.operating_points import FIRST

LEVEL = 0.95
# Errors matter that are more than so many times those stated.
MATERIAL = 1.1
Counts = Mapping[str, Any]
COUNTS = ("n_samples", "n_accepted", "n_errors", "coverage", "effective")


def share_of(hits: int, count: int, effective: Counts | None = None) -> dict[str, Any] | None:
    """Return a share with its exact interval; None of no samples.

    ``effective`` is a stored `EffectiveShare`.
    """
    if count == 0:
        return None
    found = None if effective is None else EffectiveShare(**effective)
    return {
        "value": hits / count if found is None else found.share,
        "weighted": found is not None and found.weighted,
        "interval": list(proportion_interval(hits, count, LEVEL, found)),
        "n_samples": count,
    }


def error_rate(found: Counts | None) -> dict[str, Any] | None:
    """Return the counts of a set and its ``coverage``, with the error rate and its interval.

    None if there is no set or it has no accepted answer.
    """
    if found is None or not found["n_accepted"]:
        return None
    counts = _counts(found)
    shares = share_of(counts["n_errors"], counts["n_accepted"], counts["effective"]) or {}
    return shares | counts


def _counts(found: Counts) -> dict[str, Any]:
    """Return the fields of `AcceptedSamples`; results of earlier releases have only counts."""
    known = {"coverage": found["n_accepted"] / found["n_samples"], "effective": None, **found}
    return {name: known[name] for name in COUNTS}


def contradicts(found: Counts | None, max_risk: float) -> bool:
    """Tell whether the interval of an error rate lies above the promised one."""
    judged = error_rate(found)
    return judged is not None and bool(judged["interval"][0] > max_risk)


def rate_in_words(found: Counts, *, accepted: str = "") -> str:
    """Return an error rate like ``3 of 527 are wrong, 0.57 % (0.12 % to 1.65 %)``.

    ``accepted`` follows the counts.
    """
    judged = error_rate(found)
    if judged is None:
        return "no answers are accepted"
    rate = percent_with_interval(judged["value"], judged["interval"], weighted=judged["weighted"])
    return (
        f"{count(judged['n_errors'])} of {count(judged['n_accepted'])}{accepted} are wrong, {rate}"
    )


def excess(found: Counts | None, max_risk: float | None) -> str:
    """Return what to say of an error rate above the promised one; empty of any other."""
    judged = error_rate(found)
    if judged is None or max_risk is None:
        return ""
    return excess_in_words(judged["value"], judged["interval"], max_risk)


def accepted_in_words(found: Counts) -> str:
    """Return what an error rate or operating point accepts on a set, and what of it is wrong."""
    max_risk = found["target"].get("max_risk")
    judged = error_rate(found) or {"coverage": 0.0}
    by = f"By “{found.get('operating_point')}”"
    if max_risk is not None:
        by = f"For an error rate of at most {share(max_risk)}"
    return (
        f"{by}, {percent(judged['coverage'])} of answers are accepted: {rate_in_words(found)}"
        f"{excess(found, max_risk)}."
    )


Event = Mapping[str, Any]


def further_set(
    found: models.Evaluation, point: models.OperatingPoint | None = None
) -> dict[str, Any]:
    """Return the scores of the served tables on a finished further set.

    ``point`` is the active operating point.
    """
    result = found.result or {}
    return {
        "name": found.name,
        "labelled": found.labelled,
        "finished_at": None if found.finished_at is None else found.finished_at.isoformat(),
        "samples": result["n_samples"],
        "sha256": found.data["sha256"],
        "shifted": result["shifted"],
        "outcome": result.get("outcome"),
        "findings": [with_docs(finding) for finding in result.get("findings", ())],
        "sentence": result["sentence"],
        "events": further_events(result, found.name, point),
        **{name: result.get(name) for name in ("confidence", "entropy", "above_confidence")},
        "by_confidence": (result["model_scores"] or {}).get("by_confidence"),
    }


def further_events(
    result: Mapping[str, Any], name: str = "", point: models.OperatingPoint | None = None
) -> dict[str, Any]:
    """Return the events of a further set, with what the active operating point accepts."""
    events = {}
    level = SHIFT_LEVEL / len(result["events"])
    for k, found in result["events"].items():
        own = point if k == FIRST else None
        event = {**found, "accepted": _accepted(found, name, own)}
        unpromised = _unpromised(found, name, own)
        served = event["measures"][event["served"]]
        events[k] = {name: event[name] for name in ("accuracy", "served", "shifted")}
        events[k] |= {name: served[name] for name in ("scores", "discarded")}
        events[k] |= {name: served.get(name) for name in ("population", "stated")}
        events[k]["accepted"] = [found | _rates(found) for found in event["accepted"]]
        events[k]["unpromised"] = None if unpromised is None else unpromised | _rates(unpromised)
        disproves = doubted_part(result) is None and _disproves(
            event, result["n_samples"], level=level
        )
        verdict = _verdict(result, event, level, disproves=disproves)
        events[k] |= {"disproves": disproves, "verdict": verdict}
    return events


def _accepted(event: Event, name: str, point: models.OperatingPoint | None) -> list[dict[str, Any]]:
    """Return the counts at each tested threshold, and last at that of the operating point.

    A point that was not chosen by an error rate has none: see `_unpromised`.
    """
    known = event.get("accepted", [])
    tested = [one for one in known if "operating_point" not in one]
    if point is None or "max_risk" not in (point.chosen_by or {}):
        return tested
    if any(one["threshold"] == point.threshold for one in tested):
        return tested
    own = _at_point([one for one in known if "operating_point" in one], name, point)
    return tested if own is None else [*tested, own]


def _unpromised(
    event: Event, name: str, point: models.OperatingPoint | None
) -> dict[str, Any] | None:
    """Return the counts at an active operating point that was not chosen by an error rate."""
    if point is None or "max_risk" in (point.chosen_by or {}):
        return None
    known = event.get("unpromised")
    return _at_point([] if known is None else [known], name, point)


def _at_point(
    known: Sequence[Event], name: str, point: models.OperatingPoint
) -> dict[str, Any] | None:
    """Return the counts at an operating point on a set.

    They were counted with the set if the point was active then, otherwise at its activation.
    """
    for one in known:
        if one["threshold"] == point.threshold:
            return dict(one)
    seen = ((point.consequences or {}).get("further") or {}).get(name)
    about = {"target": point.chosen_by, "threshold": point.threshold}
    return None if seen is None else about | {"operating_point": point.name} | _counts(seen)


def _rates(found: Counts) -> dict[str, Any]:
    judged = error_rate(found) or {"coverage": 0.0, "value": None, "interval": None}
    names = {"coverage": "coverage", "risk": "value", "risk_interval": "interval"}
    return {name: judged[source] for name, source in names.items()}


UNCLEAR = "unclear"
VERDICTS: dict[str, str] = {
    **{str(outcome): said for outcome, said in OPENINGS.items()},
    "shifted": "shifted",
    "alike": "no shift seen",
}


def _verdict(result: Mapping[str, Any], event: Event, level: float, *, disproves: bool) -> str:
    """Return the outcome of an event in a few words."""
    doubted = doubted_part(result)
    if doubted is not None:
        return f"{doubted} look wrong"
    # Results of earlier releases have no outcome.
    outcome = event.get("outcome") or ("shifted" if event["shifted"] else "alike")
    if outcome != "alike":
        return VERDICTS[outcome]
    if disproves:
        return "worse than promised"
    if is_too_small(result["n_samples"], level):
        return "too few samples to tell"
    served = event["measures"][event["served"]]
    is_tested = any(served.get(name) is not None for name in ("ece_p_value", "gap_p_value"))
    return UNCLEAR if is_tested and _is_miscalibrated(served, USUAL_LEVEL) else VERDICTS[outcome]


def doubted_part(found: Mapping[str, Any]) -> str | None:
    """Return which part of a further set is probably wrong: inputs, scores or labels, or None."""
    findings = found.get("findings", ())
    warnings = {one["code"] for one in findings if one["level"] == "warning"}
    if any(one["code"] == OUT_OF_RANGE and _concerns_most(one) for one in findings):
        return "inputs"
    if REVERSED in warnings:
        return "scores"
    is_near_chance = any(one["code"] == NEAR_CHANCE for one in findings)
    if not warnings.isdisjoint(LABEL_FINDINGS) or (is_near_chance and _is_as_certain(found)):
        return "labels"
    return None


def _concerns_most(found: Mapping[str, Any]) -> bool:
    """Tell whether a finding is about half of the samples or more: few rows spoil no set."""
    figures = found["figures"]
    return bool(figures["rows"] >= figures["samples"] / 2)


def _is_as_certain(found: Mapping[str, Any]) -> bool:
    """Tell whether the uncertainties are those of the calibration set, by each event's measure.

    A model that fails on the set would be less certain, or more.
    """
    events = found["events"].values()
    # Results have all measures, reports the served one.
    served = [event.get("measures", {}).get(event["served"], event) for event in events]
    populations = [one["population"] for one in served if one.get("population")]
    level = SHIFT_LEVEL / max(len(populations), 1)
    return all(one["p_value"] >= level for one in populations)


def _disproves(event: Event, n_samples: int, *, level: float) -> bool:
    """Tell whether the answers on a set are clearly worse than stated.

    More accepted answers are wrong than promised, by the test of a shift's level; or the set is
    shifted, and more are wrong than promised, or more of all answers than their probabilities say.
    Harder data may have fewer correct answers and still correct probabilities, which does not
    disprove a calibration.
    """
    if event["accuracy"] is None:
        return False
    accepted: Sequence[Event] = event.get("accepted", [])
    if any(_is_broken(found, level / len(accepted)) for found in accepted):
        return True
    if not event["shifted"]:
        return False
    if any(contradicts(found, found["target"]["max_risk"]) for found in accepted):
        return True
    served = event["measures"][event["served"]]
    right = share_of(round(event["accuracy"] * n_samples), n_samples, event.get("effective"))
    if right is None or served.get("stated") is None or not _is_miscalibrated(served, level):
        return False
    return bool(1.0 - right["interval"][1] > MATERIAL * (1.0 - served["stated"]))


def _is_broken(found: Counts, level: float) -> bool:
    """Tell whether more accepted answers are wrong than was promised, by the exact test."""
    size, errors, effective = found["n_accepted"], found["n_errors"], found.get("effective")
    if errors == 0:
        return False
    if effective is not None:
        size = EffectiveShare(**effective).in_tail(level)
        errors = effective["share"] * size
    # P(Binomial(size, max_risk) >= errors), also of numbers that are no integers.
    return bool(betainc(errors, size - errors + 1.0, found["target"]["max_risk"]) < level)


def _is_miscalibrated(served: Event, level: float) -> bool:
    """Repeat the test of `shift_outcome`."""
    band, ece_p, gap_p = served["ece_band"], served["ece_p_value"], served.get("gap_p_value")
    consistent = band is None or band["consistent"]
    return miscalibration_p_value(ece_p, gap_p, consistent=consistent) < level
