"""Brings arrays as they were sent to what an ONNX model's inputs take, or says why not."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidInput, InvalidOnnxModel
from service.graph.description import TensorSpec
from service.graph.quote import quote, quote_all
from service.model_rules import ModelRule
from service.runner.frames import DTYPES, Array

ANY_INPUT = "inputs"


def check_input_types(specs: Sequence[TensorSpec]) -> None:
    """Refuse a model with an input that no array of numbers can feed.

    Raises
    ------
    InvalidOnnxModel
        If an input takes text, or a type numpy does not have.
    """
    for spec in specs:
        if spec.dtype not in DTYPES:
            raise InvalidOnnxModel.because(
                ModelRule.INPUT_TYPE,
                f"input {spec}: expected an input of numbers, one of {', '.join(DTYPES)}",
            )


def by_input(arrays: Mapping[str, Array], specs: Sequence[TensorSpec]) -> Mapping[str, Array]:
    """Return the arrays by input name: a lone one may be called ``inputs`` whatever its name."""
    if len(specs) == 1 and arrays.keys() == {ANY_INPUT}:
        return {specs[0].name: arrays[ANY_INPUT]}
    return arrays


def fit_inputs(
    arrays: Mapping[str, Array], specs: Sequence[TensorSpec], *, location: str, start: int
) -> dict[str, Array]:
    """Return one array per input, of its dtype, all with the same number of rows.

    Integers become floats and wide floats narrow ones, as everywhere; what would change more than
    the last digits (a fraction to an integer, a number out of range) is refused. ``start`` is the
    number of the first row, for messages.

    Raises
    ------
    InvalidInput
        If a name, shape or value does not suit; the violation names the input.
    """
    names = [spec.name for spec in specs]
    for name in arrays:
        if name not in names:
            raise InvalidInput.at(
                f"{location}.{name}", f"the ONNX model has no such input; it has {quote_all(names)}"
            )
    fitted: dict[str, Array] = {}
    for spec in specs:
        place = f"{location}.{spec.name}"
        if spec.name not in arrays:
            raise InvalidInput.at(place, f"this input of the ONNX model is missing: {spec}")
        _check_shape(arrays[spec.name], spec, place)
        fitted[spec.name] = _cast(arrays[spec.name], np.dtype(spec.dtype), place, start)
    if len({len(array) for array in fitted.values()}) > 1:
        counts = ", ".join(f"{quote(name)} {len(array)}" for name, array in fitted.items())
        raise InvalidInput.at(location, f"every input needs the same number of rows: {counts}")
    return fitted


def _check_shape(array: Array, spec: TensorSpec, place: str) -> None:
    shape = (None,) if spec.shape is None else (None, *spec.shape[1:])
    suits = array.ndim == len(shape) if spec.shape is not None else array.ndim > 0
    suits = suits and all(
        want in (None, got) for want, got in zip(shape, array.shape, strict=False)
    )
    if not suits:
        axes = ", ".join(["rows", *("any" if size is None else str(size) for size in shape[1:])])
        more = ", …" if spec.shape is None else ""
        raise InvalidInput.at(
            place, f"expected shape [{axes}{more}], got {list(array.shape)} of {array.dtype.name}"
        )
    if array.size == 0:
        raise InvalidInput.at(place, "expected at least one row with at least one value")


def _cast(array: Array, dtype: np.dtype[Any], place: str, start: int) -> Array:
    if array.dtype == dtype:
        return array
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            cast = array.astype(dtype)
        wrong = np.isinf(cast) & np.isfinite(array)
        rule = f"a number within the range of {dtype.name}"
    elif dtype.kind == "b":
        cast = array.astype(dtype)
        wrong = (array != 0) & (array != 1)
        rule = "0 or 1"
    else:
        limits = np.iinfo(dtype)
        wrong = _outside(array, limits.min, limits.max)
        if array.dtype.kind == "f":
            wrong |= array != np.floor(array)  # NaN differs from itself
        with np.errstate(invalid="ignore"):
            cast = array.astype(dtype)
        rule = f"an integer from {limits.min} to {limits.max}"
    if wrong.any():
        index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        position = "".join(f"[{i}]" for i in (start + index[0], *index[1:]))
        raise InvalidInput.at(place + position, f"expected {rule}, got {array[index]!s}")
    return cast


def _outside(array: Array, least: int, most: int) -> NDArray[np.bool_]:
    if array.dtype.kind == "b":
        return np.zeros(array.shape, dtype=np.bool_)
    if array.dtype.kind == "f":
        # `most` may round up to a power of two that does not fit; the bound below it is exact.
        values = array.astype(np.float64)
        return ~((values >= float(least)) & (values < float(most + 1)))
    # numpy compares integers of any two widths, and Python integers beyond them, exactly.
    return np.asarray((array < least) | (array > most))
