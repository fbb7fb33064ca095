"""Further sets that disprove a calibration, in sentences: which data to keep away from, and why."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from howsure.numbers import percent, share
from howsure.report.further_set import AcceptedRate, FurtherEvent, FurtherSet
from howsure.report.further_sets import contradicts, rate_in_words
from howsure.report.words import text
from howsure.statistics.fit.verdict import ERROR

MOST_NAMED = 3
FAR_MORE = 1.25  # errors than on the calibration set, which then say enough
OUTCOMES = {
    "shifted": "is shifted",
    "worse": "is worse than stated",
    "miscalibrated": "is not as stated",
    "better": "is better than stated",
    "alike": "shows no shift",
}


class NamedEvents(NamedTuple):
    """The events of a further set, by k; what a headline needs of it."""

    name: str
    events: Mapping[str, FurtherEvent]


JudgedOn = TypeVar("JudgedOn", bound=NamedEvents | FurtherSet)


def disproving_sets(evaluations: Sequence[JudgedOn], k: str) -> list[JudgedOn]:
    """Return the further sets that disprove the calibration for an event, the worst first.

    Those on which a promised error rate is broken come before those that are not as stated.
    """
    disproving = [one for one in evaluations if k in one.events and one.events[k].disproves]
    return sorted(
        disproving,
        key=lambda one: (_broken(one.events[k]) is None, one.events[k].accuracy or 0.0),
    )


def _broken(event: FurtherEvent) -> AcceptedRate | None:
    """Return the first counts of accepted answers that break their promised rate.

    Those of the active operating point come first.
    """
    accepted = sorted(event.accepted, key=lambda one: one.operating_point is None)
    return next((one for one in accepted if contradicts(one, one.target["max_risk"])), None)


def disproof(sets: Sequence[FurtherSet | NamedEvents], accuracy: float, k: str) -> str:
    """Return the headline: which data to keep away from, and what went wrong on it.

    ``accuracy`` is that of the calibration set.
    """
    names = [f"“{text.name(one.name)}”" for one in sets[:MOST_NAMED]]
    if len(sets) > MOST_NAMED:
        names.append(f"{len(sets) - MOST_NAMED} more further sets")
    on = "" if len(sets) == 1 else f" on {names[0]}"
    first = sets[0].events[k]
    return f"Do not use for data like {text.enumerated(names)}: {_reason(first, accuracy, on)}"


def _reason(event: FurtherEvent, accuracy: float, on: str) -> str:
    """Return what speaks against an event on a set: more errors, a broken promise, or neither."""
    right, broken = event.accuracy or 0.0, _broken(event)
    if event.shifted and 1.0 - right > FAR_MORE * (1.0 - accuracy):
        wrong, before = percent(1.0 - right), percent(1.0 - accuracy)
        return f"{wrong} of answers are wrong{on}, {before} on the calibration set."
    if broken is not None:
        rate = rate_in_words(broken, accepted=" accepted answers")
        return f"{rate}{on}. At most {share(broken.target['max_risk'])} was promised."
    said = "" if event.stated is None else f", and {percent(event.stated)} are stated"
    return f"{percent(right)} of answers are right{on}{said}."


def details(further: FurtherSet, k: str) -> str:
    """Return the figures of a set that disproves the calibration."""
    event = further.events[k]
    said = [f"{percent(1.0 - (event.accuracy or 0.0))} of answers are wrong"]
    broken = _broken(event)
    if broken is not None:
        max_risk = share(broken.target["max_risk"])
        accepted = f" answers accepted for an error rate of at most {max_risk}"
        said.append(rate_in_words(broken, accepted=accepted))
    elif event.scores is not None and event.scores.get(ERROR) is not None:
        off = percent(event.scores[ERROR])
        said.append(f"stated probabilities are off by {off} on average")
    how = "breaks a promise" if further.outcome == "alike" else OUTCOMES[further.outcome]
    return f"The further set “{text.name(further.name)}” {how}: {'; '.join(said)}."
