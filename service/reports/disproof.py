"""Further sets that disprove a calibration, in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.reports.accepted import contradicts, rate_in_words
from service.reports.charts import text
from service.reports.numbers import percent, share

ERROR = "ece_15"
MOST_NAMED = 3
Set = Mapping[str, Any]


def disproving_sets(evaluations: Sequence[Set], k: str) -> list[Set]:
    """Return the further sets that disprove the calibration for an event, the worst first."""
    found = [one for one in evaluations if one["events"].get(k, {}).get("disproves")]
    return sorted(found, key=lambda one: float(one["events"][k]["accuracy"]))


def disproof(sets: Sequence[Set], accuracy: float, k: str) -> str:
    """Return the headline: which data to keep away from, and what went wrong on it.

    ``accuracy`` is that of the calibration set.
    """
    names = [f"“{text.name(one['name'])}”" for one in sets[:MOST_NAMED]]
    if len(sets) > MOST_NAMED:
        names.append(f"{len(sets) - MOST_NAMED} more further sets")
    on = "" if len(sets) == 1 else f" on {names[0]}"
    return (
        f"Do not use for data like {text.enumerated(names)}: "
        f"{percent(1.0 - sets[0]['events'][k]['accuracy'])} of answers are wrong{on}, "
        f"{percent(1.0 - accuracy)} on the calibration set."
    )


def details(found: Set, *, k: str) -> str:
    """Return the figures of a set that disproves the calibration."""
    event = found["events"][k]
    said = [f"{percent(1.0 - event['accuracy'])} of answers are wrong"]
    if event["scores"].get(ERROR) is not None:
        said.append(f"stated probabilities are off by {percent(event['scores'][ERROR])} on average")
    for one in event["accepted"]:
        max_risk = one["target"]["max_risk"]
        if contradicts(one, max_risk):
            said.append(
                f"{rate_in_words(one, accepted=' accepted answers')}, where at most "
                f"{share(max_risk)} was promised"
            )
            break
    return f"The further set “{text.name(found['name'])}” is shifted: {'; '.join(said)}."
