"""Tries what runs a model more than once on a few rows: whether it says anything, and its cost."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from service.core.passes.covariance_norm import covariance_norm
from service.core.passes.gradient import gradient_norm
from service.graph.names import PREFIX
from service.runner.child.finite_rows import on_finite_rows
from service.runner.child.onnx_file import Probed
from service.runner.child.same_noise import check_same_noise
from service.runner.child.single_model import SingleModel
from service.runner.child.trial_rows import (
    TIMED_PASSES,
    check_spread,
    milliseconds_a_row,
    timed_rows,
)
from service.runner.description import PLAIN, LoadedOnnxModel
from service.runner.frames import Array
from service.runner.pass_plan import DROPOUT, GRADIENT, LAST_LAYER, PassPlan


def try_passes(
    model: SingleModel,
    found: LoadedOnnxModel,
    probed: Probed,
    inputs: Mapping[str, Array],
    place: str,
    *,
    numbers: int,
) -> dict[str, float]:
    """Return what a row costs in milliseconds: one run of the plain model, and each measure.

    ``numbers`` is how many a row makes before they are summed up.

    Raises
    ------
    InvalidConfig
        If a measure is zero for every row.
    """
    fixed = found.description.fixed_batch
    rows = timed_rows(inputs, fixed, [plan.passes for plan in found.passes], numbers=numbers)
    n_rows = len(next(iter(rows.values())))
    names = probed.session.output_names
    # The model as it was probed has its Dropout nodes open, whatever runs them later.
    quiet = {} if model.noise is None else model.noise.quiet()
    plain = milliseconds_a_row(
        lambda: probed.session.run(names, {**rows, **quiet}, place=place), n_rows
    )
    costs = {PLAIN: plain}
    timed = timed_rows(inputs, fixed, [TIMED_PASSES], numbers=numbers)
    tries: dict[str, Callable[[], float]] = {
        DROPOUT: lambda: _try_dropout(model, rows, timed, fixed, place),
        LAST_LAYER: lambda: max(_try_last_layer(model, rows, place) - plain, 0.0),
        GRADIENT: lambda: _try_gradient(model, rows, timed, place),
    }
    for plan in found.passes:
        costs[plan.measure] = tries[plan.measure]()
    return costs


def _try_dropout(
    model: SingleModel,
    rows: Mapping[str, Array],
    timed: Mapping[str, Array],
    fixed_batch: int | None,
    place: str,
) -> float:
    logs = model.passes(rows, place)
    advice = f"its Dropout nodes change nothing; set dropout.rate, or use {LAST_LAYER}"
    check_spread(DROPOUT, on_finite_rows(covariance_norm, logs), logs.shape[1], advice)
    few = replace(model, dropout=_first(model.dropout))
    check_same_noise(lambda fed: few.passes(fed, place), rows, fixed_batch)
    return _cost(lambda: few.passes(timed, place), model.dropout)


def _try_last_layer(model: SingleModel, rows: Mapping[str, Array], place: str) -> float:
    """Return what a row costs with the model itself."""
    wanted = [PREFIX + LAST_LAYER]
    variance = model.run(wanted, rows, place)[wanted[0]]
    passes = 0 if model.last_layer is None else model.last_layer.passes
    advice = "the last layer ignores what is dropped; set dropout.rate"
    check_spread(LAST_LAYER, variance, passes, advice)
    return milliseconds_a_row(lambda: model.run(wanted, rows, place), len(variance))


def _try_gradient(
    model: SingleModel, rows: Mapping[str, Array], timed: Mapping[str, Array], place: str
) -> float:
    slopes = model.all_slopes(rows, place)
    exact = model.gradient is not None and not model.gradient.divisible
    advice = (
        "the model is piecewise constant, as trees are, or a step is lost to rounding in it; leave "
        "the measure out, or set gradient.step"
    )
    check_spread(GRADIENT, gradient_norm(slopes, exact=exact), 2 * slopes.shape[1], advice)
    few = replace(model, gradient=_first(model.gradient))
    return _cost(lambda: few.all_slopes(timed, place), model.gradient)


def _first(plan: PassPlan | None) -> PassPlan | None:
    """Return a plan of so few passes that more rows can be timed."""
    if plan is None:
        return None
    scales = plan.scales and {name: scale[:TIMED_PASSES] for name, scale in plan.scales.items()}
    return replace(plan, passes=min(plan.passes, TIMED_PASSES), scales=scales)


def _cost(run: Callable[[], Array], plan: PassPlan | None) -> float:
    """Return milliseconds a row of all passes, by a run whose second axis is that of its own."""
    n_rows, n_passes = run().shape[:2]
    passes = n_passes if plan is None else plan.passes
    return milliseconds_a_row(run, int(n_rows), repeat=2) * passes / int(n_passes)
