"""The sentence that says whether a set is like the calibration set."""

from howsure.statistics.fit.verdict import ERROR
from howsure.statistics.plain import percent
from howsure.statistics.shift.result import MeasureEvaluation

SHIFT_LEVEL = 0.01
LEAST_PRINTED = 1e-9


def shift_verdict(k: int, measure: MeasureEvaluation, *, n_events: int) -> tuple[bool, str]:
    """Return whether a set is shifted for the Top-k event, and a sentence about it.

    A set is shifted if the distribution of its uncertainties differs significantly from that of the
    calibration set. With labels it is also shifted if the calibration error of the served
    probabilities is above the 99 % quantile of its consistency band and chance in a fit on few
    errors does not explain it (`diagnostics.consistency.ece_permutation_test`). For sets like the
    calibration set, each test has at most 1 false alarm in 100 over all events together.
    """
    level = SHIFT_LEVEL / n_events
    differs = measure.population.p_value < level
    said = [_population(measure, differs=differs)]
    fails = False
    if measure.scores is None:
        said.append("without labels, the calibration of its probabilities is unknown")
    elif measure.ece_band is None or measure.ece_p_value is None:
        said.append("its calibration is not tested, because samples have weights or groups")
    else:
        fails = not measure.ece_band.consistent and measure.ece_p_value < level
        chance = "no more than chance explains"
        if fails:
            chance = "more than chance explains: they are miscalibrated on this set"
        elif not measure.ece_band.consistent:
            chance = f"which may be chance with so few errors (p = {measure.ece_p_value:.2g})"
        off = percent(measure.scores[ERROR] or 0.0)
        said.insert(0, f"stated probabilities are off by {off} on average ({ERROR}), {chance}")
    opening = "the set is shifted" if differs or fails else "no shift is seen"
    return differs or fails, f"Top-{k}: {opening}; {'; '.join(said)}."


def _population(measure: MeasureEvaluation, *, differs: bool) -> str:
    population = measure.population
    p_value = "p < 1e-9"
    if population.p_value >= LEAST_PRINTED:
        p_value = f"p = {population.p_value:.2g}"
    found = f"Kolmogorov-Smirnov distance {population.distance:.3f}, {p_value}"
    if not differs:
        return f"{measure.measure} is distributed as in the calibration set ({found})"
    return (
        f"{measure.measure} is distributed differently than in the calibration set: a sample of "
        f"this set has the larger value in {percent(population.auroc, digits=0)} of pairs with a "
        f"sample of the calibration set ({found})"
    )
