"""Fit of the learned measure: penalised logistic regression in stages, and its cross-fit.

Stage 1 moves the log-odds of the mass after temperature scaling (Guo et al. 2017) by a quadratic
in them and in the other measures. Stages 2 and 3 add an offset and a slope for each predicted class
and an offset for each second class. Coefficients have normal priors, whose scales are chosen by
marginal likelihood (Laplace's approximation: MacKay 1992). A stage is left out unless it is more
likely by a factor of e^2, so that nothing is learned from too few samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from howsure.statistics.arrays import BinIndex, Floats, Uncertainty
from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.learned.class_effects import ClassEffect, fit_class_effect
from howsure.statistics.learned.model import SATURATED_BELOW, LearnedModel
from howsure.statistics.learned.recorded import learned_uncertainty, recorded_inputs
from howsure.statistics.records.records import TEMPERATURES, Records

# With this many folds or fewer, each is held out by itself.
LEAST_PAIRED = 5
MAX_TUNED, MAX_LEARNED = 20_000, 50_000
MAP_SCALES, MEASURE_SCALES = (0.1, 0.3, 1.0, 3.0), (0.0, 0.1, 0.3, 1.0)
INTERCEPT_SCALE = 3.0
CLASS_SCALES = (0.15, 0.3, 0.6, 1.2)
LEAST_GAIN = 2.0
LEAST_SATURATED = 5
MOST_STEPS = 30
TOLERANCE = 1e-4
# Columns of the design: 1, v0, v1, v0^2, saturated | v2, v3, v2^2, v3^2.
N_MAP = 5


@dataclass(frozen=True, eq=False)
class LearnedFit:
    """The learned measure of one event.

    Attributes
    ----------
    model : LearnedModel
        Fitted to all samples: it serves.
    uncertainty : ndarray of float32, shape (n_samples,)
        Of the calibration set, cross-fitted: no sample's coefficients depend on its own label. Only
        the choice of the temperature and the prior scales uses all labels.
    class_effects : ndarray of float64, shape (n_classes,)
        Change of the log-odds by the predicted class, at the mean of its slope's input.
    class_counts : ndarray of int64, shape (n_classes,)
        Samples by predicted class.
    """

    model: LearnedModel
    uncertainty: Uncertainty
    class_effects: Floats
    class_counts: BinIndex


@dataclass(frozen=True, eq=False)
class _Scale:
    """Range and standardisation of the inputs, and which stages are used with which scales."""

    temperature: int
    lower: Floats
    upper: Floats
    centre: Floats
    width: Floats
    has_saturated: bool
    map_scale: float = 1.0
    measure_scale: float = 0.0
    effects: tuple[tuple[float, float] | None, ...] = (None, None)


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
        model, _ = _fitted(others, scale, n_classes)
        part = EventSamples(learned.records.take(held), samples.k)
        uncertainty[held] = learned_uncertainty(model, part)
    counts = np.bincount(samples.records.top_classes[:, 0], minlength=n_classes)
    return LearnedFit(whole, uncertainty, effects, counts)


def _first(samples: EventSamples, n: int) -> EventSamples:
    if samples.n_samples <= n:
        return samples
    return EventSamples(samples.records.take(np.arange(n)), samples.k)


def _best_temperature(records: Records) -> int:
    """Return the index of the temperature of least multiclass negative log-likelihood."""
    possible = np.isfinite(records.label_logit)
    if not possible.any():
        return int(np.abs(TEMPERATURES - 1.0).argmin())
    normaliser = records.log_sum_exp[possible].mean(axis=0, dtype=np.float64)
    logit = float(records.label_logit[possible].mean(dtype=np.float64))
    return int(np.argmin(normaliser - logit / TEMPERATURES))


def _standard(samples: EventSamples) -> _Scale:
    temperature = _best_temperature(samples.records)
    inputs = recorded_inputs(samples, temperature)
    saturated = inputs[:, 1] < SATURATED_BELOW
    n_saturated = int(np.count_nonzero(saturated))
    # The range of ordinary samples: saturated ones lie far away, and have their own coefficient.
    ordinary = inputs[~saturated] if n_saturated < len(inputs) else inputs
    lower, upper = ordinary.min(axis=0), ordinary.max(axis=0)
    held = np.clip(inputs, lower, upper)
    width = held.std(axis=0)
    # Not by the width: rounding of the mean can give equal values a tiny one.
    varies = np.ptp(held, axis=0) > 1e-6 * (1.0 + np.abs(held).max(axis=0))
    has_saturated = LEAST_SATURATED <= n_saturated <= len(inputs) - LEAST_SATURATED
    return _Scale(
        temperature,
        lower,
        upper,
        held.mean(axis=0),
        np.where(varies, width, 1.0),
        has_saturated,
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """Design, offset and hits of stage 1, and the classes of the others."""

    design: Floats
    offset: Floats
    hits: Floats
    classes: tuple[NDArray[np.int32], NDArray[np.int32]]

    @classmethod
    def of(cls, samples: EventSamples, scale: _Scale) -> "_Problem":
        inputs = recorded_inputs(samples, scale.temperature)
        saturated = (inputs[:, 1] < SATURATED_BELOW) & scale.has_saturated
        held = np.clip(inputs, scale.lower, scale.upper)
        z = (held - scale.centre) / scale.width
        design = np.column_stack(
            [np.ones(len(z)), z[:, :2], z[:, 0] ** 2, saturated, z[:, 2:], z[:, 2:] ** 2]
        )
        top = samples.records.top_classes
        hits = samples.hits.astype(np.float64)
        return cls(design, -held[:, 0], hits, (top[:, 0], top[:, 1]))


def _tuned(samples: EventSamples, n_classes: int) -> _Scale:
    """Choose the scales of all stages by marginal likelihood."""
    scale = _standard(samples)
    problem = _Problem.of(samples, scale)
    tried = []
    weights = np.zeros(problem.design.shape[1])
    for measure_scale in MEASURE_SCALES:
        for map_scale in MAP_SCALES:
            fitted, evidence = _newton(
                problem, problem.offset, _precision(map_scale, measure_scale), weights
            )
            tried.append((evidence, map_scale, measure_scale))
            weights = fitted
    base = max(tried[: len(MAP_SCALES)])
    best = max(tried)
    if best[0] - base[0] < LEAST_GAIN:
        best = base
    scale = replace(scale, map_scale=best[1], measure_scale=best[2])
    weights, _ = _newton(problem, problem.offset, _precision(*best[1:]), weights)
    log_odds = problem.offset + problem.design @ weights
    effects: list[tuple[float, float] | None] = []
    for classes, slopes in zip(problem.classes, ((0.0, 0.5), (0.0,)), strict=True):
        chosen = _chosen_effect(problem, log_odds, classes, n_classes, slopes)
        effects.append(None if chosen is None else chosen[0])
        if chosen is not None:
            log_odds = log_odds + chosen[1].log_odds(classes, problem.design[:, 1])
    return replace(scale, effects=tuple(effects))


def _chosen_effect(
    problem: _Problem,
    log_odds: Floats,
    classes: NDArray[np.int32],
    n_classes: int,
    slopes: Sequence[float],
) -> tuple[tuple[float, float], ClassEffect] | None:
    """Return scales of offsets and slopes and their fit; None if they are not likely enough."""
    without = -float(np.sum(np.logaddexp(0.0, log_odds) - problem.hits * log_odds))
    best = None
    for scale in CLASS_SCALES:
        for slope in slopes:
            pair = (scale, scale * slope)
            found = fit_class_effect(
                classes,
                problem.design[:, 1],
                log_odds,
                problem.hits,
                n_classes=n_classes,
                scales=pair,
            )
            if best is None or found.evidence > best[1].evidence:
                best = (pair, found)
    return best if best is not None and best[1].evidence - without >= LEAST_GAIN else None


def _fitted(samples: EventSamples, scale: _Scale, n_classes: int) -> tuple[LearnedModel, Floats]:
    """Fit all stages, the first once more after the others; return the effects of classes, too."""
    problem = _Problem.of(samples, scale)
    precision = _precision(scale.map_scale, scale.measure_scale)
    weights, _ = _newton(problem, problem.offset, precision, np.zeros(len(precision)))
    z = problem.design[:, 1]
    effects: list[ClassEffect | None] = [None, None]
    total = np.zeros(len(z))
    for place, (classes, scales) in enumerate(zip(problem.classes, scale.effects, strict=True)):
        if scales is not None:
            log_odds = problem.offset + problem.design @ weights + total
            found = fit_class_effect(
                classes, z, log_odds, problem.hits, n_classes=n_classes, scales=scales
            )
            effects[place] = found
            total = total + found.log_odds(classes, z)
    if total.any():
        weights, _ = _newton(problem, problem.offset + total, precision, weights)
    model = _folded(samples.k, scale, weights, effects, n_classes)
    first = effects[0]
    return model, np.zeros(n_classes) if first is None else first.offset


def _folded(
    k: int,
    scale: _Scale,
    weights: Floats,
    effects: Sequence[ClassEffect | None],
    n_classes: int,
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


def _precision(map_scale: float, measure_scale: float) -> Floats:
    """Return the prior precision of each weight; infinite for terms that are left out."""
    precision = np.full(N_MAP + 4, map_scale**-2.0)
    precision[0] = INTERCEPT_SCALE**-2.0
    precision[N_MAP:] = np.inf if measure_scale == 0.0 else measure_scale**-2.0
    return precision


def _newton(
    problem: _Problem, offset: Floats, precision: Floats, start: Floats
) -> tuple[Floats, float]:
    """Return weights that maximise the posterior, and the log marginal likelihood."""
    used = np.isfinite(precision)
    design, penalty = problem.design[:, used], precision[used]
    found = start[used]

    def loss(at: Floats) -> float:
        log_odds = offset + design @ at
        likelihood = np.sum(np.logaddexp(0.0, log_odds) - problem.hits * log_odds)
        return float(likelihood + penalty @ at**2 / 2.0)

    now = loss(found)
    for _ in range(MOST_STEPS):
        gradient, curvature = _derivatives(problem, design, offset, penalty, found)
        step = np.linalg.solve(curvature, gradient)
        size, then = 1.0, loss(found - step)
        while then > now and size > TOLERANCE:
            size /= 2.0
            then = loss(found - size * step)
        if then >= now:
            break
        found, gain, now = found - size * step, now - then, then
        if gain < TOLERANCE:
            break
    _, curvature = _derivatives(problem, design, offset, penalty, found)
    volume = np.log(penalty).sum() - np.linalg.slogdet(curvature)[1]
    weights = np.zeros(len(precision))
    weights[used] = found
    return weights, float(volume / 2.0 - now)


def _derivatives(
    problem: _Problem, design: Floats, offset: Floats, penalty: Floats, at: Floats
) -> tuple[Floats, Floats]:
    probability = expit(offset + design @ at)
    gradient = design.T @ (probability - problem.hits) + penalty * at
    weights = probability * (1.0 - probability)
    return gradient, (design * weights[:, np.newaxis]).T @ design + np.diag(penalty)
