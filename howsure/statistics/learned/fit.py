"""Fit of the learned measure: penalised logistic regression in stages, and its cross-fit.

Stage 1 moves the log-odds of the mass after temperature scaling (Guo et al. 2017) by a quadratic
in them and in the other measures. Stages 2 and 3 add an offset and a slope for each predicted class
and an offset for each second class. Coefficients have normal priors, whose scales are chosen by
marginal likelihood (Laplace's approximation: MacKay 1992). A stage is left out unless it is more
likely by a factor of e^2, so that nothing is learned from too few samples. Samples with weights or
groups count as often as they are worth: their weights sum to the effective samples of the event.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import BinIndex, Floats, Uncertainty
from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.learned.class_effects import ClassEffect, fit_class_effect
from howsure.statistics.learned.model import LearnedModel
from howsure.statistics.learned.quadratic_map import (
    MEASURE_SCALES,
    Problem,
    Scale,
    best_scales,
    falling_map,
    fit_map,
    standard_scale,
)
from howsure.statistics.learned.recorded import learned_uncertainty
from howsure.statistics.learned.temperature import candidate_temperatures
from howsure.statistics.records.records import Records

# With this many folds or fewer, each is held out by itself.
LEAST_PAIRED = 5
MAX_TUNED, MAX_LEARNED = 10_000, 50_000
CLASS_SCALES = (0.15, 0.3, 0.6, 1.2)
LEAST_GAIN = 2.0


@dataclass(frozen=True, eq=False)
class LearnedFit:
    """The learned measure of one event.

    Attributes
    ----------
    model : LearnedModel
        Fitted to all samples: it serves.
    uncertainty : ndarray of float32, shape (n_samples,)
        Of the calibration set, cross-fitted: neither a sample's coefficients nor the temperature
        and the prior scales they were fitted with depend on its own label.
    class_effects : ndarray of float64, shape (n_classes,)
        Change of the log-odds by the predicted class, at the mean of its slope's input.
    class_counts : ndarray of int64, shape (n_classes,)
        Samples by predicted class.
    """

    model: LearnedModel
    uncertainty: Uncertainty
    class_effects: Floats
    class_counts: BinIndex


def n_classes_of(*sets: Records | None) -> int:
    """Return one more than the largest class among the recorded ones."""
    found = [records for records in sets if records is not None and records.n_samples]
    return 1 + max(int(records.top_classes.max()) for records in found)


def fit_learned(samples: EventSamples, folds: BinIndex, *, n_classes: int) -> LearnedFit:
    """Fit the measure, and cross-fit it by pairs of folds.

    At most 50,000 samples are learned from, the first in the order of the records.

    Parameters
    ----------
    samples : EventSamples
        In canonical order, which is random.
    folds : ndarray of int64, shape (n_samples,)
    n_classes : int
    """
    learned = _first(samples, MAX_LEARNED)
    scale = _tuned(_first(samples, MAX_TUNED), n_classes)
    whole, effects = _fitted(learned, scale, n_classes)
    uncertainty = learned_uncertainty(whole, samples)
    groups = folds[: learned.n_samples]
    if groups.max(initial=0) >= LEAST_PAIRED:
        groups = groups // 2
    for group in np.unique(groups) if groups.max(initial=0) > 0 else ():
        held = np.flatnonzero(groups == group)
        others = EventSamples(learned.records.take(groups != group), samples.k)
        without = _tuned(_first(others, MAX_TUNED), n_classes)
        model, _ = _fitted(others, without, n_classes)
        part = EventSamples(learned.records.take(held), samples.k)
        uncertainty[held] = learned_uncertainty(model, part)
    counts = np.bincount(samples.records.top_classes[:, 0], minlength=n_classes)
    return LearnedFit(whole, uncertainty, effects, counts)


def _first(samples: EventSamples, n: int) -> EventSamples:
    if samples.n_samples <= n:
        return samples
    return EventSamples(samples.records.take(np.arange(n)), samples.k)


def _tuned(samples: EventSamples, n_classes: int) -> Scale:
    """Choose the temperature and the scales of all stages by marginal likelihood."""
    scale, problem = _tuned_map(samples)
    _, problem, weights = falling_map(samples, scale, problem)
    log_odds = problem.offset + problem.design @ weights
    effects: list[tuple[float, float] | None] = []
    for classes, slopes in zip(problem.classes, ((0.0, 0.5), (0.0,)), strict=True):
        chosen = _chosen_effect(problem, log_odds, classes, n_classes, slopes)
        effects.append(None if chosen is None else chosen[0])
        if chosen is not None:
            log_odds = log_odds + chosen[1].log_odds(classes, problem.design[:, 1])
    return replace(scale, effects=tuple(effects))


def _tuned_map(samples: EventSamples) -> tuple[Scale, Problem]:
    """Choose the temperature, and whether the map uses the other measures, each by its gain."""
    found = []
    for temperature in candidate_temperatures(samples):
        scale = standard_scale(samples, temperature)
        problem = Problem.of(samples, scale)
        found.append((*best_scales(problem, scale, MEASURE_SCALES[:1]), problem))
    evidence, scale, problem = found[0]
    if found[-1][0] - evidence >= LEAST_GAIN:
        evidence, scale, problem = found[-1]
    more, with_measures = best_scales(problem, scale, MEASURE_SCALES[1:])
    return (with_measures if more - evidence >= LEAST_GAIN else scale), problem


def _chosen_effect(
    problem: Problem,
    log_odds: Floats,
    classes: NDArray[np.int32],
    n_classes: int,
    slopes: Sequence[float],
) -> tuple[tuple[float, float], ClassEffect] | None:
    """Return scales of offsets and slopes and their fit; None if they are not likely enough."""
    without = -problem.loss(log_odds)
    best = None
    for scale in CLASS_SCALES:
        for slope in slopes:
            pair = (scale, scale * slope)
            found = _class_effect(problem, classes, log_odds, n_classes, pair)
            if best is None or found.evidence > best[1].evidence:
                best = (pair, found)
    return best if best is not None and best[1].evidence - without >= LEAST_GAIN else None


def _class_effect(
    problem: Problem,
    classes: NDArray[np.int32],
    log_odds: Floats,
    n_classes: int,
    scales: tuple[float, float],
) -> ClassEffect:
    z, hits, counts = problem.design[:, 1], problem.hits, problem.counts
    return fit_class_effect(classes, z, log_odds, hits, counts, n_classes=n_classes, scales=scales)


def _fitted(samples: EventSamples, scale: Scale, n_classes: int) -> tuple[LearnedModel, Floats]:
    """Fit all stages, the first once more after the others; return the effects of classes, too."""
    scale, problem, weights = falling_map(samples, scale)
    z = problem.design[:, 1]
    effects: list[ClassEffect | None] = [None, None]
    total = np.zeros(len(z))
    for place, (classes, scales) in enumerate(zip(problem.classes, scale.effects, strict=True)):
        if scales is not None:
            log_odds = problem.offset + problem.design @ weights + total
            found = _class_effect(problem, classes, log_odds, n_classes, scales)
            effects[place] = found
            total = total + found.log_odds(classes, z)
    if total.any():
        weights, _ = fit_map(problem, problem.offset + total, scale, weights)
    model = _folded(samples.k, scale, weights, effects, n_classes)
    first = effects[0]
    return model, np.zeros(n_classes) if first is None else first.offset


def _folded(
    k: int, scale: Scale, weights: Floats, effects: Sequence[ClassEffect | None], n_classes: int
) -> LearnedModel:
    """Return the model on the inputs' own scale instead of the standardised one."""
    z_linear = np.array([weights[1], weights[2], weights[5], weights[6]])
    z_square = np.array([weights[3], 0.0, weights[7], weights[8]])
    square = z_square / scale.width**2
    linear = z_linear / scale.width - 2.0 * square * scale.centre
    intercept = weights[0] - float(
        z_linear @ (scale.centre / scale.width) - square @ scale.centre**2
    )
    linear[0] -= 1.0  # the offset: log-odds after temperature scaling
    nothing = np.zeros(n_classes)
    first, second = effects
    slope = nothing if first is None else first.slope / scale.width[0]
    offset = nothing if first is None else first.offset - slope * scale.centre[0]
    return LearnedModel(
        k=k,
        temperature=scale.temperature,
        intercept=float(intercept),
        saturated=float(weights[4]),
        linear=linear,
        square=square,
        lower=scale.lower,
        upper=scale.upper,
        offset=offset,
        slope=slope,
        second=nothing if second is None else second.offset,
    )
