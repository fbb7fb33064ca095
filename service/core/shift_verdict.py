"""Say in words whether a further set is like the calibration set."""

from service.core.consistency import ConsistencyBand
from service.core.further_result import FurtherMeasure
from service.core.population_shift import SHIFT_LEVEL, PopulationShift


def shift_verdict(k: int, measure: FurtherMeasure) -> tuple[bool, str]:
    """Return whether the set is shifted for the Top-k event, and the sentence that says so.

    With labels the probabilities served are judged: the set is shifted where their calibration
    error is above the 99 % point of its consistency band. Without, the uncertainties are: the set
    is shifted where they are told from those of the calibration set at the 1 % level. Each call is
    false at most about 1 time in 100.
    """
    if measure.ece_band is None:
        return _by_population(k, measure)
    return _by_scores(k, measure, measure.ece_band)


def _by_scores(k: int, measure: FurtherMeasure, band: ConsistencyBand) -> tuple[bool, str]:
    found = (
        f"the calibration error of the probabilities served ({measure.measure}) is "
        f"{band.observed:.4f} on it, and {{}} the {band.upper:.4f} that calibrated ones would "
        "exceed in 1 of 100 such sets"
    )
    if not band.consistent:
        sentence = (
            f"Top-{k}: the set is shifted; {found.format('above')}. The probabilities do not hold "
            "on data like this."
        )
        return True, sentence
    sentence = f"Top-{k}: no shift is seen; {found.format('not above')}."
    if measure.population.differs:
        sentence += f" Its uncertainties, though, are distributed otherwise ({_distance(measure)})."
    return False, sentence


def _by_population(k: int, measure: FurtherMeasure) -> tuple[bool, str]:
    population: PopulationShift = measure.population
    if not population.differs:
        sentence = (
            f"Top-{k}: no shift is seen; without labels, {measure.measure} is not told from that "
            f"of the calibration set ({_distance(measure)})."
        )
        return False, sentence
    side = "larger" if population.auroc > 0.5 else "smaller"  # noqa: PLR2004 -- chance
    sentence = (
        f"Top-{k}: the set is shifted; without labels, {measure.measure} is distributed otherwise "
        f"than in the calibration set, {side} on the whole ({_distance(measure)}). The "
        "probabilities may not hold on data like this."
    )
    return True, sentence


def _distance(measure: FurtherMeasure) -> str:
    population = measure.population
    p_value = f"p = {population.p_value:.2g}" if population.p_value >= 1e-9 else "p < 1e-9"  # noqa: PLR2004 -- smaller ones say no more
    return (
        f"Kolmogorov-Smirnov distance {population.distance:.3f}, {p_value}, called at "
        f"{SHIFT_LEVEL:g}"
    )
