"""The verdict on another set: whether it is like the calibration set."""

import numpy as np

from howsure.statistics.fit.verdict import ERROR
from howsure.statistics.shift.result import MeasureEvaluation, Outcome

SHIFT_LEVEL = 0.01
# Sets in which a larger Kolmogorov-Smirnov distance goes unseen are too small to judge: fewer than
# 43 samples for one event.
MOST_UNSEEN = 0.25


def shift_outcome(measure: MeasureEvaluation, *, level: float) -> Outcome:
    """Return how a set compares with the calibration set, by the served measure of an event.

    A set is shifted if the distribution of its uncertainties differs significantly from that of the
    calibration set. With labels, `miscalibration_p_value` decides whether its probabilities hold.
    If they do not, the set is worse or better than stated where the mean probability is off by at
    least half of the calibration error. For sets like the calibration set, each of the two tests
    has at most 1 false alarm in 100 over all events together.
    """
    if measure.population.p_value < level:
        return "shifted"
    if measure.scores is None or stated_p_value(measure) >= level:
        return "alike"
    return _failure(measure, measure.scores[ERROR] or 0.0)


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


def stated_p_value(measure: MeasureEvaluation) -> float:
    """Return `miscalibration_p_value` of a measure on a labelled set."""
    consistent = measure.ece_band is None or measure.ece_band.consistent
    return miscalibration_p_value(measure.ece_p_value, measure.gap_p_value, consistent=consistent)


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
