"""A calibration on other sets: its accepted answers, and whether they disprove it."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict
from scipy.special import betainc

from howsure.numbers import count, percent, share
from howsure.report.findings import documented
from howsure.report.further_set import (
    AcceptedCounts,
    AcceptedRate,
    CountedEvent,
    CountedEvents,
    CountedSet,
    Counts,
    DecidedPoint,
    DescribedSet,
    FurtherEvent,
    FurtherSet,
)
from howsure.report.parts import FIRST, ErrorRate, Share
from howsure.report.words.methods import best_sentence
from howsure.report.words.shifts import OPENINGS, USUAL_LEVEL
from howsure.shares import excess_in_words, percent_with_interval
from howsure.statistics.bins.intervals import proportion_interval
from howsure.statistics.effective import EffectiveShare
from howsure.statistics.findings import LABEL_FINDINGS, NEAR_CHANCE, OUT_OF_RANGE, REVERSED
from howsure.statistics.findings.evidence import Finding
from howsure.statistics.shift.population import PopulationShift
from howsure.statistics.shift.verdict import SHIFT_LEVEL, is_too_small, stated_p_value

LEVEL = 0.95
# Errors matter that are more than so many times those stated.
MATERIAL = 1.1


def share_of(hits: int, n_samples: int, effective: EffectiveShare | None = None) -> Share | None:
    """Return a share with its exact interval; None of no samples."""
    if n_samples == 0:
        return None
    return Share(
        value=hits / n_samples if effective is None else effective.share,
        weighted=effective is not None and effective.weighted,
        interval=proportion_interval(hits, n_samples, LEVEL, effective),
        n_samples=n_samples,
    )


def error_rate(counts: Counts | None) -> ErrorRate | None:
    """Return the counts of a set with the error rate and its interval.

    None if there is no set or it has no accepted answer.
    """
    if counts is None:
        return None
    rate = share_of(counts.n_errors, counts.n_accepted, counts.effective)
    if rate is None:
        return None
    return ErrorRate(
        value=rate.value,
        weighted=rate.weighted,
        interval=rate.interval,
        n_samples=counts.n_samples,
        n_accepted=counts.n_accepted,
        n_errors=counts.n_errors,
        coverage=counts.coverage,
        effective=counts.effective,
    )


def contradicts(counts: Counts | None, max_risk: float) -> bool:
    """Tell whether the interval of an error rate lies above the promised one."""
    rate = error_rate(counts)
    return rate is not None and rate.interval[0] > max_risk


def rate_in_words(counts: Counts, *, accepted: str = "") -> str:
    """Return an error rate like ``3 of 527 are wrong, 0.57 % (0.12 % to 1.65 %)``.

    ``accepted`` follows the counts.
    """
    rate = error_rate(counts)
    if rate is None:
        return "no answers are accepted"
    percents = percent_with_interval(rate.value, rate.interval, weighted=rate.weighted)
    return f"{count(rate.n_errors)} of {count(rate.n_accepted)}{accepted} are wrong, {percents}"


def excess(counts: Counts | None, max_risk: float | None) -> str:
    """Return what to say of an error rate above the promised one; empty of any other."""
    rate = error_rate(counts)
    if rate is None or max_risk is None:
        return ""
    return excess_in_words(rate.value, rate.interval, max_risk)


def accepted_in_words(counts: AcceptedCounts) -> str:
    """Return what an error rate or operating point accepts on a set, and what of it is wrong."""
    max_risk = counts.target.get("max_risk")
    coverage = counts.coverage if counts.n_accepted else 0.0
    by = f"By “{counts.operating_point}”"
    if max_risk is not None:
        by = f"For an error rate of at most {share(max_risk)}"
    return (
        f"{by}, {percent(coverage)} of answers are accepted: {rate_in_words(counts)}"
        f"{excess(counts, max_risk)}."
    )


def further_set(
    result: CountedSet, described: DescribedSet, point: DecidedPoint | None = None
) -> FurtherSet:
    """Return the scores of the served tables on a finished further set.

    ``point`` is the active operating point.
    """
    scores = result.model_scores
    return FurtherSet(
        **asdict(described),
        samples=result.n_samples,
        shifted=result.shifted,
        outcome=result.outcome,
        findings=documented(result.findings),
        sentence=result.sentence,
        events=further_events(result, described.name, point),
        confidence=result.confidence,
        entropy=result.entropy,
        above_confidence=result.above_confidence,
        by_confidence=None if scores is None else list(scores.by_confidence),
    )


def further_events(
    result: CountedEvents, name: str = "", point: DecidedPoint | None = None
) -> dict[str, FurtherEvent]:
    """Return the events of a further set, with what the active operating point accepts."""
    events = {}
    level = SHIFT_LEVEL / len(result.events)
    doubted = doubted_part(
        result.findings,
        [event.measures[event.served].population for event in result.events.values()],
    )
    for k, event in result.events.items():
        own = point if k == FIRST else None
        accepted, unpromised = _accepted(event, name, own), _unpromised(event, name, own)
        served = event.measures[event.served]
        disproves = doubted is None and _disproves(event, accepted, result.n_samples, level=level)
        verdict = f"{doubted} look wrong"
        if doubted is None:
            verdict = _verdict(event, result.n_samples, level, disproves=disproves)
        events[k] = FurtherEvent(
            accuracy=event.accuracy,
            served=event.served,
            shifted=event.shifted,
            scores=served.scores,
            discarded={str(at): part for at, part in served.discarded.items()},
            population=served.population,
            stated=served.stated,
            accepted=[_with_rate(one) for one in accepted],
            unpromised=None if unpromised is None else _with_rate(unpromised),
            disproves=disproves,
            verdict=verdict,
            methods=event.methods,
            best=event.best,
            best_sentence=best_sentence(event.best, event.methods),
        )
    return events


def _with_rate(counts: AcceptedCounts) -> AcceptedRate:
    rate = error_rate(counts)
    if rate is None:
        return AcceptedRate(**asdict(counts) | {"coverage": 0.0}, risk=None, risk_interval=None)
    return AcceptedRate(**asdict(counts), risk=rate.value, risk_interval=rate.interval)


def _accepted(event: CountedEvent, name: str, point: DecidedPoint | None) -> list[AcceptedCounts]:
    """Return the counts at each tested threshold, and last at that of the operating point.

    A point that was not chosen by an error rate has none: see `_unpromised`.
    """
    tested = [one for one in event.accepted if one.operating_point is None]
    if point is None or "max_risk" not in (point.chosen_by or {}):
        return tested
    if any(one.threshold == point.threshold for one in tested):
        return tested
    own = _at_point([one for one in event.accepted if one not in tested], name, point)
    return tested if own is None else [*tested, own]


def _unpromised(
    event: CountedEvent, name: str, point: DecidedPoint | None
) -> AcceptedCounts | None:
    """Return the counts at an active operating point that was not chosen by an error rate."""
    if point is None or "max_risk" in (point.chosen_by or {}):
        return None
    return _at_point([] if event.unpromised is None else [event.unpromised], name, point)


def _at_point(
    counted: Sequence[AcceptedCounts], name: str, point: DecidedPoint
) -> AcceptedCounts | None:
    """Return the counts at an operating point on a set.

    They were counted with the set if the point was active then, otherwise at its activation.
    """
    for one in counted:
        if one.threshold == point.threshold:
            return one
    at_activation: dict[str, Any] | None = ((point.consequences or {}).get("further") or {}).get(
        name
    )
    if at_activation is None or point.threshold is None:
        return None
    effective = at_activation.get("effective")
    return AcceptedCounts(
        target=point.chosen_by or {},
        threshold=point.threshold,
        operating_point=point.name,
        n_samples=at_activation["n_samples"],
        n_accepted=at_activation["n_accepted"],
        n_errors=at_activation["n_errors"],
        coverage=at_activation["coverage"],
        effective=None if effective is None else EffectiveShare(**effective),
    )


UNCLEAR = "unclear"
VERDICTS: dict[str, str] = {
    **{str(outcome): said for outcome, said in OPENINGS.items()},
    "shifted": "shifted",
    "alike": "no shift seen",
}


def _verdict(event: CountedEvent, n_samples: int, level: float, *, disproves: bool) -> str:
    """Return the outcome of an event in a few words."""
    if event.outcome != "alike":
        return VERDICTS[event.outcome]
    if disproves:
        return "worse than promised"
    if is_too_small(n_samples, level):
        return "too few samples to tell"
    served = event.measures[event.served]
    is_tested = served.ece_p_value is not None or served.gap_p_value is not None
    is_unclear = is_tested and stated_p_value(served) < USUAL_LEVEL
    return UNCLEAR if is_unclear else VERDICTS[event.outcome]


def doubted_part(
    findings: Sequence[Finding], populations: Sequence[PopulationShift | None]
) -> str | None:
    """Return which part of a further set is probably wrong: inputs, scores or labels, or None.

    ``populations`` are those of each event's served measure.
    """
    warnings = {one.code for one in findings if one.level == "warning"}
    if any(one.code == OUT_OF_RANGE and _concerns_most(one) for one in findings):
        return "inputs"
    if REVERSED in warnings:
        return "scores"
    is_near_chance = any(one.code == NEAR_CHANCE for one in findings)
    if not warnings.isdisjoint(LABEL_FINDINGS) or (is_near_chance and _is_as_certain(populations)):
        return "labels"
    return None


def doubted_part_of(further: FurtherSet) -> str | None:
    """Return which part of a reported set is probably wrong."""
    return doubted_part(further.findings, [event.population for event in further.events.values()])


def _concerns_most(finding: Finding) -> bool:
    """Tell whether a finding is about half of the samples or more: few rows spoil no set."""
    rows, samples = finding.figures["rows"], finding.figures["samples"]
    return isinstance(rows, int) and isinstance(samples, int) and rows >= samples / 2


def _is_as_certain(populations: Sequence[PopulationShift | None]) -> bool:
    """Tell whether the uncertainties are those of the calibration set, by each event's measure.

    A model that fails on the set would be less certain, or more.
    """
    compared = [one for one in populations if one is not None]
    level = SHIFT_LEVEL / max(len(compared), 1)
    return all(one.p_value >= level for one in compared)


def _disproves(
    event: CountedEvent, accepted: Sequence[AcceptedCounts], n_samples: int, *, level: float
) -> bool:
    """Tell whether the answers on a set are clearly worse than stated.

    More accepted answers are wrong than promised, by the test of a shift's level; or the set is
    shifted, and more are wrong than promised, or more of all answers than their probabilities say.
    Harder data may have fewer correct answers and still correct probabilities, which does not
    disprove a calibration.
    """
    if event.accuracy is None:
        return False
    if any(is_broken(one, level / len(accepted)) for one in accepted):
        return True
    if not event.shifted:
        return False
    if any(contradicts(one, one.target["max_risk"]) for one in accepted):
        return True
    served = event.measures[event.served]
    right = share_of(round(event.accuracy * n_samples), n_samples, event.effective)
    if right is None or served.stated is None or stated_p_value(served) >= level:
        return False
    return bool(1.0 - right.interval[1] > MATERIAL * (1.0 - served.stated))


def is_broken(counts: AcceptedCounts, level: float) -> bool:
    """Tell whether more accepted answers are wrong than was promised, by the exact test."""
    size, errors = float(counts.n_accepted), float(counts.n_errors)
    if errors == 0.0:
        return False
    if counts.effective is not None:
        size = counts.effective.in_tail(level)
        errors = counts.effective.share * size
    # P(Binomial(size, max_risk) >= errors), also of numbers that are no integers.
    return bool(betainc(errors, size - errors + 1.0, counts.target["max_risk"]) < level)
