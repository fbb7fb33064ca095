"""The verdict on another set in words."""

from howsure.report.words.compared_methods import chance_of
from howsure.shares import percent
from howsure.statistics.fit.verdict import ERROR
from howsure.statistics.shift.result import EvaluationResult, MeasureEvaluation, Outcome
from howsure.statistics.shift.verdict import SHIFT_LEVEL, is_too_small, stated_p_value

# A p-value below this is seldom called chance.
USUAL_LEVEL = 0.05
LEAST_PRINTED = 1e-9
# How far from a half the share of larger values is if values are called higher or lower.
CLEARLY = 0.03
OPENINGS: dict[Outcome, str] = {
    "shifted": "the set is shifted",
    "worse": "worse than stated",
    "miscalibrated": "not as stated",
    "better": "better than stated",
    "alike": "no shift is seen",
}
UNLABELLED_OPENING = "no shift of its uncertainties is seen"
UNLABELLED = (
    "without labels, whether its probabilities hold is unknown: wrong answers that are as certain "
    "as right ones are not seen"
)


def shift_sentences(result: EvaluationResult) -> dict[int, str]:
    """Return the verdict on a set by each event."""
    level = SHIFT_LEVEL / len(result.events)
    return {
        k: shift_sentence(k, event.measures[event.served], event.outcome, level)
        for k, event in result.events.items()
    }


def shift_sentence(k: int, measure: MeasureEvaluation, outcome: Outcome, level: float) -> str:
    """Return the verdict by an event, and whether the set is too small to show a shift."""
    said = [_population(measure, level)]
    if measure.scores is None:
        said.append(UNLABELLED)
    else:
        off = f"off by {percent(measure.scores[ERROR] or 0.0)} on average ({ERROR})"
        said.insert(0, f"stated probabilities are {off}, {_chance(measure, level)}")
        if measure.right is not None and measure.stated is not None:
            shares = f"{percent(measure.right)} are right, {percent(measure.stated)} stated"
            said.insert(0, shares)
    opening = _unshifted(measure, level) if outcome == "alike" else OPENINGS[outcome]
    return f"Top-{k}: {opening}; {'; '.join(said)}."


def _chance(measure: MeasureEvaluation, level: float) -> str:
    """Return whether chance explains that stated probabilities are off."""
    band, p_value = measure.ece_band, stated_p_value(measure)
    if p_value < level:
        return f"more than chance explains ({_p(p_value)}): they are miscalibrated on this set"
    if p_value < USUAL_LEVEL or not (band is None or band.consistent):
        return _doubt(p_value, level)
    if band is not None:
        return chance_of(band)
    return f"and chance explains the difference of shares ({_p(p_value)})"


def _p(p_value: float) -> str:
    return f"p = {p_value:.2g}"


def _doubt(p_value: float, level: float) -> str:
    """Return why a deviation that chance seldom explains does not count as a failure."""
    p = _p(p_value)
    if p_value >= USUAL_LEVEL:
        return f"which may be chance ({p})"
    return f"which is probably more than chance, but not proven: {p}, and the level is {level:.2g}"


def _unshifted(measure: MeasureEvaluation, level: float) -> str:
    n = sum(measure.occupancy)
    if not is_too_small(n, level):
        return UNLABELLED_OPENING if measure.scores is None else OPENINGS["alike"]
    return f"too few samples to tell whether the set is shifted, {n}"


def _population(measure: MeasureEvaluation, level: float) -> str:
    population = measure.population
    p_value = "p < 1e-9"
    if population.p_value >= LEAST_PRINTED:
        p_value = f"p = {population.p_value:.2g}"
    test = f"Kolmogorov-Smirnov distance {population.distance:.3f}, {p_value}"
    if population.p_value >= level:
        return f"no difference of certainty is seen, by {measure.measure} ({test})"
    above_half = population.auroc - 0.5
    if abs(above_half) < CLEARLY:
        return (
            f"certainty is distributed differently than on the calibration set, by "
            f"{measure.measure} ({test})"
        )
    how = "less" if above_half > 0.0 else "more"
    share = percent(0.5 + abs(above_half), digits=0)
    return (
        f"answers are {how} certain than on the calibration set, by {measure.measure}: of one "
        f"answer from each, that of this set is the {how} certain one in {share} of cases ({test})"
    )
