"""The sentence that says whether a set is like the calibration set."""

import numpy as np

from howsure.statistics.fit.verdict import ERROR
from howsure.statistics.plain import percent
from howsure.statistics.shift.result import MeasureEvaluation, Outcome

SHIFT_LEVEL = 0.01
# A p-value below this is seldom called chance.
USUAL_LEVEL = 0.05
LEAST_PRINTED = 1e-9
# How far from a half the share of larger values is if values are called higher or lower.
CLEARLY = 0.03
# Sets in which a larger Kolmogorov-Smirnov distance goes unseen are too small to judge: fewer than
# 43 samples for one event.
MOST_UNSEEN = 0.25


OPENINGS: dict[Outcome, str] = {
    "shifted": "the set is shifted",
    "worse": "worse than stated",
    "miscalibrated": "not as stated",
    "better": "better than stated",
    "alike": "no shift is seen",
}
UNLABELLED_OPENING = "no shift of its uncertainties is seen"


def shift_verdict(k: int, measure: MeasureEvaluation, *, n_events: int) -> tuple[Outcome, str]:
    """Return how a set compares with the calibration set for the Top-k event, and a sentence.

    A set is shifted if the distribution of its uncertainties differs significantly from that of the
    calibration set. With labels, `miscalibration_p_value` decides whether its probabilities hold.
    If they do not, the set is worse or better than stated where the mean probability is off by at
    least half of the calibration error. For sets like the calibration set, each of the two tests
    has at most 1 false alarm in 100 over all events together. The sentence says so where the set is
    too small to show a shift.
    """
    level = SHIFT_LEVEL / n_events
    differs = measure.population.p_value < level
    outcome: Outcome = "shifted" if differs else "alike"
    said = [_population(measure, differs=differs)]
    if measure.scores is None:
        said.append(
            "without labels, whether its probabilities hold is unknown: wrong answers that are as "
            "certain as right ones are not seen"
        )
    else:
        band, error = measure.ece_band, measure.scores[ERROR] or 0.0
        consistent = band is None or band.consistent
        p_value = miscalibration_p_value(
            measure.ece_p_value, measure.gap_p_value, consistent=consistent
        )
        chance = f"and chance explains the difference of shares ({_p(p_value)})"
        if band is not None:
            chance = band.explained
        if p_value < level:
            outcome = "shifted" if differs else _failure(measure, error)
            chance = (
                f"more than chance explains ({_p(p_value)}): they are miscalibrated on this set"
            )
        elif p_value < USUAL_LEVEL or not consistent:
            chance = _doubt(p_value, level)
        off = f"off by {percent(error)} on average ({ERROR})"
        said.insert(0, f"stated probabilities are {off}, {chance}")
        if measure.right is not None and measure.stated is not None:
            shares = f"{percent(measure.right)} are right, {percent(measure.stated)} stated"
            said.insert(0, shares)
    opening = _unshifted(measure, level) if outcome == "alike" else OPENINGS[outcome]
    return outcome, f"Top-{k}: {opening}; {'; '.join(said)}."


def miscalibration_p_value(ece_p: float | None, gap_p: float | None, *, consistent: bool) -> float:
    """Return the p-value of the hypothesis that stated probabilities hold on a set.

    It is twice the smaller one of two. One is of the share of hits (`gap_permutation_test`). The
    other is of the calibration error (`ece_permutation_test`), and 1 if that is ``consistent``
    with its band. With weights or groups it is that of the share of hits (`gap.gap_test`), and
    results of earlier releases have only the other one.
    """
    of_error = 1.0 if consistent or ece_p is None else ece_p
    if gap_p is None:
        return of_error
    return gap_p if ece_p is None else min(1.0, 2.0 * min(of_error, gap_p))


def _p(p_value: float) -> str:
    return f"p = {p_value:.2g}"


def _doubt(p_value: float, level: float) -> str:
    """Return why a deviation that chance seldom explains does not count as a failure."""
    p = _p(p_value)
    if p_value >= USUAL_LEVEL:
        return f"which may be chance ({p})"
    return f"which is probably more than chance, but not proven: {p}, and the level is {level:.2g}"


def _failure(measure: MeasureEvaluation, error: float) -> Outcome:
    """Return in which direction probabilities fail."""
    too_high = (measure.stated or 0.0) - (measure.right or 0.0)
    if abs(too_high) < error / 2.0:
        return "miscalibrated"
    return "worse" if too_high > 0.0 else "better"


def is_too_small(n_samples: int, level: float) -> bool:
    """Tell whether a set of so many samples cannot show a shift at this level."""
    # Kolmogorov's limit: the distance that a test of so many samples takes for a shift.
    return 0 < 2.0 * n_samples * MOST_UNSEEN**2 < float(np.log(2.0 / level))


def _unshifted(measure: MeasureEvaluation, level: float) -> str:
    n = sum(measure.occupancy)
    if not is_too_small(n, level):
        return UNLABELLED_OPENING if measure.scores is None else OPENINGS["alike"]
    return f"too few samples to tell whether the set is shifted, {n}"


def _population(measure: MeasureEvaluation, *, differs: bool) -> str:
    population = measure.population
    p_value = "p < 1e-9"
    if population.p_value >= LEAST_PRINTED:
        p_value = f"p = {population.p_value:.2g}"
    found = f"Kolmogorov-Smirnov distance {population.distance:.3f}, {p_value}"
    if not differs:
        return f"no difference of certainty is seen, by {measure.measure} ({found})"
    above_half = population.auroc - 0.5
    if abs(above_half) < CLEARLY:
        return (
            f"certainty is distributed differently than on the calibration set, by "
            f"{measure.measure} ({found})"
        )
    how = "less" if above_half > 0.0 else "more"
    share = percent(0.5 + abs(above_half), digits=0)
    return (
        f"answers are {how} certain than on the calibration set, by {measure.measure}: of one "
        f"answer from each, that of this set is the {how} certain one in {share} of cases ({found})"
    )
