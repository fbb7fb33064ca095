"""What POST /predict asks, whatever body it came in: arrays, held against what the model takes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.bodies.tensors import check_numbers, check_shape
from service.errors import InvalidInput, shown

# Of any dtype of numbers; numpy's stubs allow no arithmetic on NDArray[np.generic].
Array: TypeAlias = NDArray[Any]
ScoreKind: TypeAlias = Literal["logits", "probabilities"]

# The only input of a model may be called so, whatever its name.
ANY_INPUT = "inputs"
SCORE_KINDS: tuple[ScoreKind, ...] = ("logits", "probabilities")
SUM_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class SentPicture:
    """A picture as its file is, not yet decoded, and what it is called in errors."""

    place: str
    content: bytes


@dataclass(frozen=True, eq=False)
class PredictRequest:
    """One request. Nothing about its arrays is known but that they hold numbers or booleans.

    Attributes
    ----------
    calibration : str
        An id, a name, or ``name@version``.
    arrays : mapping of str to ndarray
        A row a sample: the model's inputs by name, ``inputs`` being the only one whatever it is
        called; or ``logits``, or ``probabilities``.
    supplied : mapping of str to ndarray
        The rows' own uncertainties, by name, where one of them answers.
    pictures : sequence of SentPicture
        A row each, in the place of arrays.
    content : bytes, optional
        A file of a set, in the place of arrays: see `service.bodies.set_arrays`.
    """

    calibration: str
    arrays: Mapping[str, Array]
    supplied: Mapping[str, Array] = field(default_factory=dict)
    pictures: Sequence[SentPicture] = ()
    content: bytes | None = None


def model_inputs(
    request: PredictRequest, names: Iterable[str], *, max_rows: int
) -> dict[str, Array]:
    """Return the model's inputs by name.

    Whether their numbers are finite is left to `check_finite`.

    Raises
    ------
    InvalidInput
        If an input is missing or unknown, or lengths differ.
    TooLarge
        If there are more rows than is allowed.
    """
    known = list(names)
    arrays = dict(request.arrays)
    if len(known) == 1 and arrays.keys() == {ANY_INPUT}:
        arrays = {known[0]: arrays[ANY_INPUT]}
    else:
        _check_names(arrays, known)
    for name, array in arrays.items():
        check_shape(array.shape, location=_place(name, known), max_rows=max_rows)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidInput.at(
            ANY_INPUT, f"every input needs the same number of rows: {shown(str(lengths))[1:-1]}"
        )
    return arrays


def check_finite(arrays: Mapping[str, Array], names: Sequence[str]) -> None:
    """Refuse inputs, of a model that has these, with what is no finite number of float32's range.

    Raises
    ------
    InvalidInput
        The violation names the element.
    """
    for name, array in arrays.items():
        check_numbers(array, location=_place(name, names))


def class_scores(
    request: PredictRequest, *, n_classes: int, max_rows: int
) -> tuple[ScoreKind, NDArray[np.float64]]:
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
    if given.ndim != 2 or given.shape[1] != n_classes:  # noqa: PLR2004 - a matrix
        raise InvalidInput.at(kind, f"expected shape [rows, {n_classes}], got {list(given.shape)}")
    scores = _reals(given, kind)
    if kind == "logits":
        return kind, scores
    bad = (scores < 0).any(axis=1) | (np.abs(scores.sum(axis=1) - 1.0) > SUM_TOLERANCE)
    if bad.any():
        raise InvalidInput.at(
            f"probabilities[{int(np.argmax(bad))}]",
            "expected non-negative values that sum to 1 within 0.001",
        )
    with np.errstate(divide="ignore"):
        return kind, np.log(scores)


def supplied_columns(
    request: PredictRequest, names: Iterable[str], *, n_rows: int
) -> dict[str, NDArray[np.float32]]:
    """Return the supplied uncertainties that are needed, by name, one a row.

    Raises
    ------
    InvalidInput
        If one is missing or unknown, holds what is no finite number, or has another length.
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
    """Return what an input is called in messages: a lone one needs no name."""
    return ANY_INPUT if len(names) == 1 else f"{ANY_INPUT}.{name}"


def _check_names(arrays: Mapping[str, Array], known: list[str]) -> None:
    names = ", ".join(known)
    if arrays.keys() <= set(SCORE_KINDS) and not arrays.keys() & set(known):
        raise InvalidInput.at(ANY_INPUT, "this calibration runs a model; send its `inputs`")
    if arrays.keys() == {ANY_INPUT} and ANY_INPUT not in known:
        raise InvalidInput.at(ANY_INPUT, f"the model has several inputs; name them: {names}")
    for name in arrays:
        if name not in known:
            raise InvalidInput.at(
                f"{ANY_INPUT}.{shown(name)[1:-1]}", f"the model has no such input; it has {names}"
            )
    for name in known:
        if name not in arrays:
            raise InvalidInput.at(f"{ANY_INPUT}.{name}", "this input of the model is missing")


def _reals(array: Array, place: str) -> NDArray[np.float64]:
    if array.dtype.kind == "b":
        raise InvalidInput.at(place, "expected numbers, got booleans")
    check_numbers(array, location=place)
    return array.astype(np.float64, copy=False)
