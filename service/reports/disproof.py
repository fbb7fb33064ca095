"""Further sets that disprove a calibration, in sentences: which data to keep away from, and why."""

from collections.abc import Mapping, Sequence
from typing import Any

from howsure.statistics.fit.verdict import ERROR
from service.reports.charts import text
from service.reports.charts.further_sets import OUTCOMES
from service.reports.further_sets import Counts, Event, contradicts, rate_in_words
from service.reports.numbers import percent, share

MOST_NAMED = 3
FAR_MORE = 1.25  # errors than on the calibration set, which then say enough
Set = Mapping[str, Any]


def disproving_sets(evaluations: Sequence[Set], k: str) -> list[Set]:
    """Return the further sets that disprove the calibration for an event, the worst first.

    Those on which a promised error rate is broken come before those that are not as stated.
    """
    found = [one for one in evaluations if one["events"].get(k, {}).get("disproves")]
    return sorted(
        found,
        key=lambda one: (_broken(one["events"][k]) is None, float(one["events"][k]["accuracy"])),
    )


def _broken(event: Event) -> Counts | None:
    """Return the first counts of accepted answers that break their promised rate.

    Those of the active operating point come first.
    """
    accepted = sorted(event["accepted"], key=lambda one: "operating_point" not in one)
    return next((one for one in accepted if contradicts(one, one["target"]["max_risk"])), None)


def disproof(sets: Sequence[Set], accuracy: float, k: str) -> str:
    """Return the headline: which data to keep away from, and what went wrong on it.

    ``accuracy`` is that of the calibration set.
    """
    names = [f"“{text.name(one['name'])}”" for one in sets[:MOST_NAMED]]
    if len(sets) > MOST_NAMED:
        names.append(f"{len(sets) - MOST_NAMED} more further sets")
    on = "" if len(sets) == 1 else f" on {names[0]}"
    first = sets[0]["events"][k]
    return f"Do not use for data like {text.enumerated(names)}: {_reason(first, accuracy, on)}"


def _reason(event: Event, accuracy: float, on: str) -> str:
    """Return what speaks against an event on a set: more errors, a broken promise, or neither."""
    errors, known, broken = 1.0 - event["accuracy"], 1.0 - accuracy, _broken(event)
    if event.get("shifted", True) and errors > FAR_MORE * known:
        wrong, before = percent(errors), percent(known)
        return f"{wrong} of answers are wrong{on}, {before} on the calibration set."
    if broken is not None:
        rate = rate_in_words(broken, accepted=" accepted answers")
        return f"{rate}{on}. At most {share(broken['target']['max_risk'])} was promised."
    stated = event.get("stated")
    said = "" if stated is None else f", and {percent(stated)} are stated"
    return f"{percent(event['accuracy'])} of answers are right{on}{said}."


def details(found: Set, k: str) -> str:
    """Return the figures of a set that disproves the calibration."""
    event = found["events"][k]
    said = [f"{percent(1.0 - event['accuracy'])} of answers are wrong"]
    broken = _broken(event)
    if broken is not None:
        max_risk = share(broken["target"]["max_risk"])
        accepted = f" answers accepted for an error rate of at most {max_risk}"
        said.append(rate_in_words(broken, accepted=accepted))
    elif event["scores"].get(ERROR) is not None:
        off = percent(event["scores"][ERROR])
        said.append(f"stated probabilities are off by {off} on average")
    outcome = found["outcome"] or "shifted"
    how = "breaks a promise" if outcome == "alike" else OUTCOMES[outcome]
    return f"The further set “{text.name(found['name'])}” {how}: {'; '.join(said)}."
