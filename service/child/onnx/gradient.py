"""Slopes of the norm of the probabilities, and of logits, along directions of the inputs."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np

from howsure.bins_document.pass_plan import PassPlan
from howsure.statistics.arrays import Floats
from howsure.statistics.measures.gradient import (
    SLOPE_MEASURES,
    directions,
    gaussian_directions,
    is_exact,
)
from service.child.onnx.batches import apply_to_finite_rows
from service.errors import InvalidConfig
from service.graph.description import TensorSpec
from service.runner.messages.frames import Array

TAKEN = ("float32", "float64")
USUAL_STEP = 1e-3
LEAST_SPACINGS = 16  # distances between adjacent floats

Logs: TypeAlias = Callable[[Mapping[str, Array]], Floats]


def check_gradient_inputs(measure: str, specs: Sequence[TensorSpec]) -> None:
    """Refuse a model whose inputs do not allow small steps.

    Raises
    ------
    InvalidConfig
        If an input takes integers, truth values, or floats too coarse to difference.
    """
    for spec in specs:
        if spec.dtype not in TAKEN:
            raise InvalidConfig.at(
                "config.measures",
                f"{measure} takes small steps along the inputs, so each must be float32 or "
                f"float64; input {spec} is not. Export the model with float inputs, or leave the "
                "measure out",
            )


def plan_gradient(plan: PassPlan, trial: Mapping[str, Array]) -> PassPlan:
    """Complete the plan with the size of a step along each direction, from the first rows.

    The unit is the median, over the values of an input, of the standard deviation over the rows,
    so that a few values on a larger scale do not dominate. An input with at most as many values as
    directions is stepped along its axes, each by its own deviation.
    """
    scales = {
        name: _scales(array, plan.passes, plan.step or USUAL_STEP) for name, array in trial.items()
    }
    exact = any(is_exact(array.shape[1:], plan.passes) for array in trial.values())
    return replace(
        plan,
        passes=sum(map(len, scales.values())),
        scales=scales,
        divisible=len(trial) == 1 and not exact,
    )


def _scales(array: Array, n_directions: int, step: float) -> tuple[float, ...]:
    """Return the spread of an input's finite values along each direction."""
    is_known = np.isfinite(array)
    wide = np.where(is_known, array, 0.0).astype(np.float64)
    counts = np.maximum(is_known.sum(axis=0), 1)
    apart = np.where(is_known, wide - wide.sum(axis=0) / counts, 0.0)
    each = np.sqrt(np.square(apart).sum(axis=0) / counts).ravel()
    size = np.sqrt(np.square(wide).sum(axis=0) / counts).ravel()
    varying = each > 0
    # Floats far from 0 are so far apart that a small step would be rounded away.
    least = LEAST_SPACINGS * np.finfo(array.dtype).eps * size / step
    each = np.maximum(each, least)
    usual = float(np.median(each[varying])) if varying.any() else float(np.sqrt(np.mean(size**2)))
    usual = usual or 1.0
    if is_exact(array.shape[1:], n_directions):
        return tuple(np.where(varying, each, usual).tolist())
    return (usual,) * n_directions


def slopes_of(
    rows: Mapping[str, Array], plan: PassPlan, logs: Logs, measures: Collection[str]
) -> dict[str, Floats]:
    """Return the slopes along each direction, by measure, all from the same runs.

    Those of ``gradient_norm`` have the shape (n_rows, directions), those of ``jacobian_norm``
    (n_rows, directions, n_classes). ``logs`` returns the logits or log-probabilities of rows. The
    squared norm of a gradient is the mean of the squared slopes if the plan is divisible,
    otherwise their sum.
    """
    along = [
        slopes
        for site, name in enumerate(sorted(rows))
        for slopes in _along(name, rows, plan, logs, site, measures)
    ]
    return {measure: np.stack([one[measure] for one in along], axis=1) for measure in measures}


def _along(
    name: str,
    rows: Mapping[str, Array],
    plan: PassPlan,
    logs: Logs,
    site: int,
    measures: Collection[str],
) -> Iterator[dict[str, Floats]]:
    array = rows[name]
    scales = (plan.scales or {})[name]
    shape = array.shape[1:]
    # Text of another length than the planned rows has as many directions as those.
    exact = not plan.divisible and prod(shape) == len(scales)
    draw = directions if exact else gaussian_directions
    steps = draw(shape, n_directions=len(scales), seed=plan.seed, site=site)
    weight = 1.0 if exact or plan.divisible else len(steps) ** -0.5
    for direction, scale in zip(steps, scales, strict=True):
        size = scale * (plan.step or USUAL_STEP)
        step = (direction * size).astype(array.dtype)
        forth, back = array + step, array - step
        moved = _moved(forth, back, direction)
        moved = np.where(moved > 0.0, moved, np.inf)
        plus, minus = logs({**rows, name: forth}), logs({**rows, name: back})
        slopes = {}
        for measure in measures:
            rise = partial(SLOPE_MEASURES[measure].slopes, distance=1.0)
            # Transposed, because the rows are the last axis to which `moved` is aligned.
            slopes[measure] = (apply_to_finite_rows(rise, plus, minus).T / moved * weight).T
        yield slopes


def _moved(forth: Array, back: Array, direction: Array) -> Floats:
    """Return the actual step of each row along the direction, shape (n_rows,).

    A small step is rounded next to a large value, and is 0 for a missing value.
    """
    along = direction.ravel().astype(np.float64)
    apart = (forth.astype(np.float64) - back).reshape(len(forth), -1)
    is_known = np.isfinite(apart)
    length: Floats = is_known @ np.square(along)
    return np.where(is_known, apart, 0.0) @ along / np.where(length > 0.0, length, np.inf)
