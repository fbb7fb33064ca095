"""A request for predictions: its arrays, held against the calibration that is to answer."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from howsure.outputs import (
    SUM_TOLERANCE,
    OutputKind,
    are_off,
    log_scores,
    sum_advice,
)
from howsure.statistics.measures import SCORE
from service.child.requests.tensors import NEVER_MISSING, check_numbers, check_shape
from service.errors import InvalidInput, shown
from service.runner.messages.dataset import PAIRS
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import ANY_INPUT

SCORE_KINDS: tuple[OutputKind, ...] = ("logits", "probabilities")
# The scores of pairs: in requests, in files of arrays, and as rows that a set was read to.
SCORES: Literal["scores"] = "scores"
_PAIR_ARRAYS = (SCORES, SCORE, ANY_INPUT)


@dataclass(frozen=True, eq=False)
class SentPicture:
    """A picture that is not yet decoded, and its location in errors."""

    place: str
    content: bytes


@dataclass(frozen=True, eq=False)
class PredictRequest:
    """One request. Its arrays hold numbers or booleans; nothing else is checked yet.

    Attributes
    ----------
    arrays : mapping of str to ndarray
        A row per sample: the model's inputs by name, where ``inputs`` may stand for the only one;
        or ``logits``, or ``probabilities``.
    supplied : mapping of str to ndarray
        Supplied uncertainties of the rows, by name.
    pictures : sequence of SentPicture
        A row each, in place of arrays.
    named_rows : bytes
        JSON of rows by the names of their columns, in place of arrays; not decoded yet.
    named_kind : str
        What these rows hold: ``inputs``, ``logits`` or ``probabilities``.
    calibration : str or None
        The id, name, or ``name@version`` in a JSON body; other bodies name no calibration.
    """

    arrays: Mapping[str, Array]
    supplied: Mapping[str, Array] = field(default_factory=dict)
    pictures: Sequence[SentPicture] = ()
    named_rows: bytes = b""
    named_kind: str = ANY_INPUT
    calibration: str | None = None


def model_inputs(
    request: PredictRequest, names: Iterable[str], *, max_rows: int
) -> dict[str, Array]:
    """Return the model's inputs by name.

    `check_finite` checks their numbers, `fit_inputs` their names, types and lengths.

    Raises
    ------
    InvalidInput
        If the request holds outputs, or one array for a model with several inputs.
    TooLarge
        If there are more rows than is allowed.
    """
    known = list(names)
    arrays = dict(request.arrays)
    if len(known) == 1 and arrays.keys() == {ANY_INPUT}:
        arrays = {known[0]: arrays[ANY_INPUT]}
    elif request.named_rows or (
        arrays.keys() <= {*SCORE_KINDS, SCORES, PAIRS} and not arrays.keys() & set(known)
    ):
        raise InvalidInput.at(ANY_INPUT, "this calibration runs a model; send its `inputs`")
    elif arrays.keys() == {ANY_INPUT} and ANY_INPUT not in known:
        raise InvalidInput.at(
            ANY_INPUT, f"the model has several inputs; name them: {', '.join(known)}"
        )
    for name, array in arrays.items():
        check_shape(array.shape, location=_place(name, known), max_rows=max_rows)
    return arrays


def check_finite(
    arrays: Mapping[str, Array],
    names: Sequence[str],
    may_lack: Collection[str],
    columns: Mapping[str, Sequence[str]],
) -> None:
    """Refuse inputs with numbers that are not finite in float32.

    ``names`` are the model's inputs; those that ``may_lack`` values may have NaN. ``columns`` are
    the names of each input's columns, where they have names.

    Raises
    ------
    InvalidInput
        The violation names the element.
    """
    for name, array in arrays.items():
        lacking = "" if name in may_lack else NEVER_MISSING
        known = columns.get(name, ())
        check_numbers(array, location=_place(name, names), lacking=lacking, columns=known)


def class_scores(
    request: PredictRequest, *, n_classes: int, max_rows: int
) -> tuple[OutputKind, NDArray[np.float64]]:
    """Return logits, or the logarithms of probabilities, of shape (n_samples, n_classes).

    Raises
    ------
    InvalidInput
        If there are none, the shape differs or a row is no distribution.
    TooLarge
        If there are more rows than is allowed.
    """
    kind = next((kind for kind in SCORE_KINDS if request.arrays.keys() == {kind}), None)
    if kind is None:
        raise InvalidInput.at(
            "inputs", "this calibration has no model; send its `logits` or `probabilities`"
        )
    given = request.arrays[kind]
    check_shape(given.shape, location=kind, max_rows=max_rows)
    if given.shape[1:] != (n_classes,):
        message = f"expected shape [rows, {n_classes}], got {list(given.shape)}"
        if (kind, n_classes) == ("probabilities", 2) and given.shape[1:] in {(), (1,)}:
            message += "; send both classes of each row, [[1 - p, p], ...]"
        raise InvalidInput.at(kind, message)
    scores = _reals(given, kind)
    if kind == "logits":
        return kind, scores
    bad = (scores < -SUM_TOLERANCE).any(axis=1) | are_off(scores)
    if bad.any():
        row = int(np.argmax(bad))
        fix = "" if scores[row].min() < 0.0 else f"; {sum_advice(scores[row])}"
        raise InvalidInput.at(
            f"probabilities[{row}]",
            "expected non-negative values that sum to 1 within 0.001, got "
            f"{scores[row].sum():.6g}{fix}",
        )
    return kind, log_scores(scores, kind)


def pair_scores(request: PredictRequest, *, max_rows: int) -> NDArray[np.float64]:
    """Return the scores of a request for a calibration of pairs, shape (n_samples,).

    Raises
    ------
    InvalidInput
        If there are none, they are not one number a row, or one is not finite.
    TooLarge
        If there are more rows than is allowed.
    """
    if PAIRS in request.arrays and SCORE in request.supplied:
        return -_reals(request.supplied[SCORE], SCORES)
    name = next((name for name in _PAIR_ARRAYS if request.arrays.keys() == {name}), None)
    if name is None:
        raise InvalidInput.at(
            SCORES, "this calibration takes `scores`, one number a row; send them alone"
        )
    given = request.arrays[name]
    check_shape(given.shape, location=name, max_rows=max_rows)
    if given.ndim != 1:
        raise InvalidInput.at(name, f"expected one number a row, got shape {list(given.shape)}")
    return _reals(given, name)


def supplied_columns(
    request: PredictRequest, names: Iterable[str], *, n_rows: int
) -> dict[str, NDArray[np.float32]]:
    """Return the supplied uncertainties that are needed, by name, one per row.

    Raises
    ------
    InvalidInput
        If one is missing or unknown, has another length, or a number that is not finite.
    """
    needed = list(names)
    for name in request.supplied:
        if name not in needed:
            known = ", ".join(needed) or "none"
            raise InvalidInput.at(
                "supplied", f"no event is answered by {shown(name)}; used: {known}"
            )
    found = {}
    for name in needed:
        place = f"supplied.{name}"
        if name not in request.supplied:
            raise InvalidInput.at(place, "an event is answered by this measure; send one a row")
        values = request.supplied[name]
        if values.shape != (n_rows,):
            raise InvalidInput.at(place, f"expected {n_rows} numbers, one a row")
        found[name] = _reals(values, place).astype(np.float32)
    return found


def _place(name: str, names: Sequence[str]) -> str:
    """Return the location of an input in messages; a single input needs no name."""
    return ANY_INPUT if len(names) == 1 else f"{ANY_INPUT}.{shown(name)[1:-1]}"


def _reals(array: Array, place: str) -> NDArray[np.float64]:
    if array.dtype.kind == "b":
        raise InvalidInput.at(place, "expected numbers, got booleans")
    check_numbers(array, location=place)
    return array.astype(np.float64, copy=False)
