"""Trial of a model on the first rows of a calibration set: checks and timing."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from howsure.bins_document.pass_plan import DROPOUT, LAST_LAYER, PLAIN, PassPlan
from howsure.onnx_head.builder import PREFIX
from howsure.statistics.arrays import Floats
from howsure.statistics.measures.gradient import SLOPE_MEASURES
from howsure.statistics.measures.passes import covariance_norm
from service.child.onnx.batches import apply_to_finite_rows, batch_rows, padded
from service.child.onnx.model_inputs import ModelInputs
from service.child.onnx.noise import check_same_noise
from service.child.onnx.onnx_file import Probed
from service.child.onnx.single_model import SingleModel
from service.errors import InvalidConfig, InvalidOnnxModel, ModelRule
from service.graph.description import OutputChoice
from service.graph.output.logits import distribution
from service.graph.serving import TOP_SCORES
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import LoadedOnnxModel

MAX_TIMED_ROWS = 32
MAX_TIMED_RUNS = 1024  # rows times passes
TIMED_PASSES = 8  # fewer passes, so that more rows can be timed
REPETITIONS = 3
OUTLIER = 50  # by which the last row is multiplied


def fitted_trial(
    trial: Mapping[str, Array], inputs: ModelInputs, location: str
) -> dict[str, Array]:
    """Return the trial rows in the types and shapes of the model.

    Raises
    ------
    InvalidConfig
        If pictures cannot become the model's input.
    InvalidInput
        If the model does not take the rows.
    """
    inputs.check_preprocessing()
    return inputs.fitted(trial, location=location, start=0)


def timed_rows(
    inputs: Mapping[str, Array], fixed_batch: int | None, passes: Sequence[int], *, numbers: int
) -> dict[str, Array]:
    """Return a few rows, fewer for many passes; exactly a batch if the batch is fixed.

    They fit into one batch; ``numbers`` is how many numbers a row takes before they are reduced.
    """
    most = min(MAX_TIMED_ROWS, MAX_TIMED_RUNS // max((1, *passes)))
    most = min(max(1, most), batch_rows(inputs, numbers, None))
    return first_rows(inputs, most, fixed_batch)


def first_rows(
    inputs: Mapping[str, Array], n_rows: int, fixed_batch: int | None
) -> dict[str, Array]:
    """Return at most ``n_rows`` rows; exactly a batch if the batch is fixed."""
    if fixed_batch is None:
        return {name: array[:n_rows] for name, array in inputs.items()}
    return {name: padded(array[:fixed_batch], 0, fixed_batch) for name, array in inputs.items()}


def milliseconds_a_row(
    run: Callable[[], object], n_rows: int, *, repeat: int = REPETITIONS
) -> float:
    """Return the shortest time of a few runs; the first may include a warm-up."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return 1000.0 * min(times) / n_rows


def check_spread(measure: str, values: Floats, passes: int, advice: str) -> None:
    """Refuse a measure that is zero for every trial row, since it cannot rank samples.

    Raises
    ------
    InvalidConfig
        The message ends with the advice.
    """
    if not np.any(values):
        rows = "the first row" if len(values) == 1 else f"each of the first {len(values)} rows"
        raise InvalidConfig.at(
            "config.measures", f"{measure} is zero for {rows} over {passes} passes: {advice}"
        )


def try_passes(
    model: SingleModel,
    found: LoadedOnnxModel,
    probed: Probed,
    inputs: Mapping[str, Array],
    place: str,
    *,
    numbers: int,
) -> dict[str, float]:
    """Return the milliseconds a row of one run of the plain model, and of each measure.

    ``numbers`` is how many numbers a row takes before they are reduced.

    Raises
    ------
    InvalidConfig
        If a measure is zero for every row.
    """
    fixed = found.description.fixed_batch
    rows = timed_rows(inputs, fixed, [plan.passes for plan in found.passes], numbers=numbers)
    n_rows = len(next(iter(rows.values())))
    names = probed.session.output_names
    # The probed model reads noise inputs in place of its Dropout nodes.
    neutral = {} if model.noise is None else model.noise.neutral()
    plain = milliseconds_a_row(
        lambda: probed.session.run(names, {**rows, **neutral}, place=place), n_rows
    )
    costs = {PLAIN: plain}
    timed = timed_rows(inputs, fixed, [TIMED_PASSES], numbers=numbers)
    tries: dict[str, Callable[[], float]] = {
        DROPOUT: lambda: _try_dropout(model, rows, timed, fixed, place),
        LAST_LAYER: lambda: max(_try_last_layer(model, rows, place) - plain, 0.0),
    } | {
        plan.measure: partial(_try_slopes, replace(model, slopes=(plan,)), rows, timed, place)
        for plan in model.slopes
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
    check_spread(DROPOUT, apply_to_finite_rows(covariance_norm, logs), logs.shape[1], advice)
    few = replace(model, dropout=None if model.dropout is None else _first(model.dropout))
    check_same_noise(lambda fed: few.passes(fed, place), rows, fixed_batch)
    return cost_of(lambda: few.passes(timed, place), logs.shape[1])


def _try_last_layer(model: SingleModel, rows: Mapping[str, Array], place: str) -> float:
    """Return the milliseconds a row, with the run of the model."""
    wanted = [PREFIX + LAST_LAYER]
    variance = model.run(wanted, rows, place)[wanted[0]]
    passes = 0 if model.last_layer is None else model.last_layer.passes
    advice = "the last layer ignores what is dropped; set dropout.rate"
    check_spread(LAST_LAYER, variance, passes, advice)
    return milliseconds_a_row(lambda: model.run(wanted, rows, place), len(variance))


def _try_slopes(
    model: SingleModel, rows: Mapping[str, Array], timed: Mapping[str, Array], place: str
) -> float:
    (plan,), (slopes,) = model.slopes, model.all_slopes(rows, place)
    norms = SLOPE_MEASURES[plan.measure].norm(slopes, exact=not plan.divisible)
    advice = (
        "the model is piecewise constant, as trees are, or a step is lost to rounding in it; leave "
        "the measure out, or set gradient.step"
    )
    check_spread(plan.measure, norms, 2 * slopes.shape[1], advice)
    few = replace(model, slopes=(_first(plan),))
    return cost_of(lambda: few.all_slopes(timed, place)[0], slopes.shape[1])


def _first(plan: PassPlan) -> PassPlan:
    """Return the plan with few passes, so that more rows can be timed."""
    scales = plan.scales and {name: scale[:TIMED_PASSES] for name, scale in plan.scales.items()}
    return replace(plan, passes=min(plan.passes, TIMED_PASSES), scales=scales)


def cost_of(run: Callable[[], Array], passes: int) -> float:
    """Return the milliseconds a row of all passes, from a run of some; axis 1 is the passes."""
    n_rows, n_passes = run().shape[:2]
    return milliseconds_a_row(run, int(n_rows), repeat=2) * passes / int(n_passes)


# Fused kernels and half precision move a probability by less; a wrong axis by far more.
RELATIVE_TOLERANCE = 1e-2
ABSOLUTE_TOLERANCE = 1e-3


def verify_scores(
    choice: OutputChoice, values: Array, probabilities: Array, classes: Array | None = None
) -> None:
    """Compare probabilities with those that numpy computes from the model's output.

    Parameters
    ----------
    values
        Values of the tensor that the head reads, for these rows.
    probabilities, classes
        From another run of the model: those of all classes, or of these, shape (n_rows, m).

    Raises
    ------
    InvalidOnnxModel
        If a finite row differs, for example because the model is random.
    """
    expected = distribution(values, choice.kind, choice.positive_column)
    finite = np.isfinite(expected).all(axis=1)
    if classes is not None:
        if (classes < 0).any() or (classes >= choice.n_classes).any():
            raise InvalidOnnxModel.because(
                ModelRule.ANSWERS_DIFFER, "ONNX Runtime ranked classes that do not exist"
            )
        expected = np.take_along_axis(expected, classes.astype(np.int64), axis=1)
    if expected.shape != probabilities.shape:
        raise InvalidOnnxModel.because(
            ModelRule.ANSWERS_DIFFER, "the output's shape differs from one run to the next"
        )
    _refuse_differing(finite & ~_are_close(probabilities, expected), "scores")


def beside_outlier(rows: Mapping[str, Array]) -> dict[str, Array] | None:
    """Return the rows and, last, one of far larger numbers; None if no input is a float.

    A scale that a model takes of a whole batch follows the outlier.
    """
    if not any(array.dtype.kind == "f" for array in rows.values()):
        return None
    return {
        name: np.concatenate([array, array[-1:] * (OUTLIER if array.dtype.kind == "f" else 1)])
        for name, array in rows.items()
    }


def verify_apart(apart: Mapping[str, Array], together: Mapping[str, Array]) -> None:
    """Compare the head's answers to rows that ran one by one with those of a batch.

    ``together`` may have further rows at the end.

    Raises
    ------
    InvalidOnnxModel
        If they differ: the rows of one caller would change the answers to another.
    """
    alone = apart[TOP_SCORES]
    if not _are_close(together[TOP_SCORES][: len(alone)], alone).all():
        raise InvalidOnnxModel.because(
            ModelRule.ROWS_MIXED,
            "its answer to a row changes with the rows beside it; a model must answer each row by "
            "itself: export it in inference mode, with no sum or mean over the batch",
        )


def verify_scalar(values: Array, passed: Array) -> None:
    """Compare a scalar output that the head passes through with another run of the model.

    Raises
    ------
    InvalidOnnxModel
        If a finite row differs by more than rounding, relative to the largest value.
    """
    own = np.asarray(values, dtype=np.float64).reshape(len(values))
    finite = np.isfinite(own) & np.isfinite(passed)
    scale = np.abs(own[finite]).max(initial=0)
    close = np.isclose(passed, own, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE * scale)
    _refuse_differing(np.asarray(finite & ~close), "uncertainties")


def _are_close(found: Array, expected: Array) -> NDArray[np.bool_]:
    """Return which rows of two matrices are equal, but for rounding; NaN equals NaN."""
    close = np.isclose(
        found, expected, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE, equal_nan=True
    )
    return np.asarray(close.all(axis=1))


def _refuse_differing(differs: NDArray[np.bool_], what: str) -> None:
    if differs.any():
        raise InvalidOnnxModel.because(
            ModelRule.ANSWERS_DIFFER,
            f"it answered row {int(np.argmax(differs))} with other {what} when it was run a second "
            "time; a model must answer the same rows alike",
        )
