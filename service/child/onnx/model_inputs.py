"""Conversion of arrays from requests and sets to the inputs of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from howsure.preprocessing import PIXELS, Preprocessing
from service.child.onnx.shape_advice import (
    MATRIX_AXES,
    axis_advice,
    count_advice,
    each_input_advice,
    made_shape,
    options_advice,
    pixels_advice,
    refuse_pictures,
    shape_advice,
)
from service.child.pictures.values import keeps_pixels, model_values, pixels_in_order
from service.child.reading.columns import listed
from service.errors import InvalidConfig, InvalidInput, InvalidOnnxModel, ModelRule, shown
from service.graph.description import TensorSpec, quote, quote_all
from service.runner.messages.frames import DTYPES, Array
from service.runner.messages.onnx_models import ANY_INPUT, names_each_input

SHOWN_COLUMNS = 30


def check_input_types(specs: Sequence[TensorSpec]) -> None:
    """Refuse a model with an input that no array of numbers can feed.

    Raises
    ------
    InvalidOnnxModel
        If an input takes text, or a type that numpy does not have.
    """
    for spec in specs:
        if spec.dtype == "str":
            raise InvalidOnnxModel.because(
                ModelRule.INPUT_TYPE,
                f"input {spec}: this model takes text, which is not supported yet; encode text "
                "and categories as numbers before the model",
            )
        if spec.dtype not in DTYPES:
            raise InvalidOnnxModel.because(
                ModelRule.INPUT_TYPE,
                f"input {spec}: expected an input of numbers, one of {', '.join(DTYPES)}",
            )


def by_input(arrays: Mapping[str, Array], specs: Sequence[TensorSpec]) -> Mapping[str, Array]:
    """Return the arrays by input name; a single input may also be called ``inputs``."""
    if len(specs) == 1 and arrays.keys() == {ANY_INPUT}:
        return {specs[0].name: arrays[ANY_INPUT]}
    return arrays


def fit_inputs(
    arrays: Mapping[str, Array],
    specs: Sequence[TensorSpec],
    *,
    location: str,
    start: int,
    of_rows: int | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Array]:
    """Return one array per input, of its dtype, all with the same number of rows.

    Integers are converted to floats, and floats to the model's precision. Conversions that would
    change more than the last digits are refused: fractions to integers, numbers out of range.
    For messages, ``start`` is the number of the first row, ``of_rows`` how many the whole set has,
    and ``columns`` are the table columns of each input.

    Raises
    ------
    InvalidInput
        If a name, shape or value does not suit; the violation names the input.
    """
    names = [spec.name for spec in specs]
    for name, array in arrays.items():
        if name not in names:
            raise InvalidInput.at(
                f"{location}.{shown(name)[1:-1]}",
                f"the ONNX model has no such input; it has {quote_all(names)}"
                # Advice for a set; a request cannot change the model.
                + (
                    f"{pixels_advice(name, array)}{each_input_advice(specs, columns)}"
                    if location != ANY_INPUT
                    else "; leave it out" * (name in ("label", "labels"))
                ),
            )
    fitted: dict[str, Array] = {}
    for spec in specs:
        place = f"{location}.{spec.name}"
        if spec.name not in arrays:
            is_set = location != ANY_INPUT and bool(columns)
            rest = "; config.columns must name the columns of every input" * is_set
            raise InvalidInput.at(place, f"this input of the ONNX model is missing: {spec}{rest}")
        own = _columns_of(spec, columns, is_only=len(specs) == 1)
        _check_shape(arrays[spec.name], spec, place, of_rows, own)
        fitted[spec.name] = _cast(arrays[spec.name], np.dtype(spec.dtype), place, start)
    if len({len(array) for array in fitted.values()}) > 1:
        counts = ", ".join(f"{quote(name)} {len(array)}" for name, array in fitted.items())
        raise InvalidInput.at(location, f"every input needs the same number of rows: {counts}")
    return fitted


def _columns_of(
    spec: TensorSpec, columns: Mapping[str, Sequence[str]] | None, *, is_only: bool
) -> Sequence[str]:
    """Return the table columns of an input; those of a single input may be called ``inputs``."""
    found = columns or {}
    return found.get(spec.name) or (found.get(ANY_INPUT, ()) if is_only else ())


def _check_shape(
    array: Array, spec: TensorSpec, place: str, of_rows: int | None, columns: Sequence[str]
) -> None:
    shape = (None,) if spec.shape is None else (None, *spec.shape[1:])
    suits = array.ndim == len(shape) if spec.shape is not None else array.ndim > 0
    suits = suits and all(
        want in (None, got) for want, got in zip(shape, array.shape, strict=False)
    )
    if not suits:
        axes = ", ".join(["rows", *("any" if size is None else str(size) for size in shape[1:])])
        more = ", …" if spec.shape is None else ""
        found = [of_rows, *array.shape[1:]] if of_rows and array.ndim else list(array.shape)
        fix = axis_advice(spec.shape, array.shape) or shape_advice(shape, array.shape)
        if not fix and columns and len(columns) in {*shape[1:], *array.shape[1:]}:
            fix = f"{count_advice(shape, array.shape, columns)}; columns: "
            fix += listed(columns, most=SHOWN_COLUMNS)
        raise InvalidInput.at(
            place,
            f"expected shape [{axes}{more}], got {found} of {array.dtype.name}{fix}",
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
        is_missing = array.dtype.kind == "f" and np.isnan(array[index])
        got = f"a missing value, which {dtype.name} does not have" if is_missing else array[index]
        raise InvalidInput.at(place + position, f"expected {rule}, got {got}")
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


PREPROCESSING = "config.preprocessing"


@dataclass(frozen=True, eq=False)
class ModelInputs:
    """The inputs of a model, and how pictures become its only input.

    With ``preprocessing``, an array called ``pixels`` holds pixels, uint8 of shape (n, height,
    width, channels). Without it, ``pixels`` is an ordinary name. ``table_columns`` are the columns
    of each input, if the calibration set was a table. ``of_rows`` is the number of rows that
    messages name: that of the whole set, or None for the number of rows at hand.
    """

    specs: Sequence[TensorSpec]
    preprocessing: Preprocessing | None = None
    table_columns: Mapping[str, Sequence[str]] | None = None
    of_rows: int | None = None

    @property
    def names(self) -> list[str]:
        """Names of the inputs."""
        return [spec.name for spec in self.specs]

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """The names of the columns of each input; empty unless all columns have names.

        A list column of a table is one name for many numbers.
        """
        found = {}
        for spec in self.specs:
            names = _columns_of(spec, self.table_columns, is_only=len(self.specs) == 1)
            shape = (None, None) if spec.shape is None else spec.shape
            if not names or len(shape) != MATRIX_AXES:
                return {}
            if shape[1] != len(names) and not (shape[1] is None and len(names) > 1):
                return {}
            found[spec.name] = names
        return found

    def check_preprocessing(self) -> None:
        """Refuse a model that cannot take pictures after this preprocessing.

        Raises
        ------
        InvalidConfig
        """
        if self.preprocessing is None:
            return
        if len(self.specs) != 1:
            raise InvalidConfig.at(
                PREPROCESSING,
                "it makes one input of a picture, and the model has several: "
                f"{quote_all(self.names)}; leave it out and send arrays",
            )
        (spec,) = self.specs
        made = made_shape(self.preprocessing)
        taken = made if spec.shape is None else (None, *spec.shape[1:])
        sizes = zip(made, taken, strict=False)
        if len(made) != len(taken) or any(m and t and m != t for m, t in sizes):
            raise InvalidConfig.at(
                PREPROCESSING,
                f"it makes {_axes(made)} of pictures, and the model takes {spec}; set "
                f"{options_advice(self.preprocessing, taken)}",
            )
        if np.dtype(spec.dtype).kind != "f" and not keeps_pixels(self.preprocessing):
            raise InvalidConfig.at(
                PREPROCESSING,
                f"it makes fractions of pixels, and the model takes {spec}; use the preset none, "
                "pixels as they are",
            )

    def are_pixels(self, arrays: Mapping[str, Array]) -> bool:
        """Tell whether the arrays are pixels that become the model's input."""
        return self.preprocessing is not None and arrays.keys() == {PIXELS}

    def fitted(self, arrays: Mapping[str, Array], *, location: str, start: int) -> dict[str, Array]:
        """Return one array per input, of its type; ``start`` is the number of the first row.

        Raises
        ------
        InvalidInput
            If a name, shape or value does not suit; the violation names the array.
        """
        if self.preprocessing is not None and PIXELS in arrays:
            return self._of_pixels(arrays, self.preprocessing, location, start)
        if self.preprocessing is not None:
            refuse_pictures(arrays, location, self.preprocessing)
        named = by_input(arrays, self.specs)
        columns = self.table_columns or {}
        if named.keys() == {ANY_INPUT} and names_each_input(columns, self.names):
            # Later the set is read anew, by these columns.
            whole = named[ANY_INPUT]
            named = {name: whole[:, [columns[ANY_INPUT].index(name)]] for name in self.names}
        return fit_inputs(
            named,
            self.specs,
            location=location,
            start=start,
            of_rows=self.of_rows,
            columns=self.table_columns,
        )

    def as_sent(self, arrays: Mapping[str, Array]) -> Array:
        """Return the arrays of each sample as they were sent; equal samples have equal bytes."""
        if self.are_pixels(arrays):
            return arrays[PIXELS]
        named = by_input(arrays, self.specs)
        if len(self.specs) == 1:
            return named[self.specs[0].name]
        lines = [np.ascontiguousarray(named[name]) for name in self.names]
        return np.concatenate(
            [line.reshape(len(line), -1).view(np.uint8) for line in lines], axis=1
        )

    def _of_pixels(
        self,
        arrays: Mapping[str, Array],
        preprocessing: Preprocessing,
        location: str,
        start: int,
    ) -> dict[str, Array]:
        if len(arrays) > 1:
            others = quote_all([name for name in arrays if name != PIXELS])
            raise InvalidInput.at(
                location, f"{PIXELS} are all that the model takes; leave out {others}"
            )
        height, width = preprocessing.crop or (None, None)
        spec = TensorSpec(PIXELS, "uint8", (None, height, width, preprocessing.channels))
        pixels = fit_inputs(arrays, [spec], location=location, start=start)[PIXELS]
        if keeps_pixels(preprocessing):
            values: Array = pixels_in_order(pixels, preprocessing)
        else:
            values = model_values(pixels, preprocessing)
        (taken,) = self.specs
        self._check_made(values, taken, pixels, f"{location}.{PIXELS}")
        return fit_inputs({taken.name: values}, self.specs, location=location, start=start)

    def _check_made(self, values: Array, taken: TensorSpec, pixels: Array, place: str) -> None:
        """Refuse pixels of another size than the model's; the message has the pictures' size."""
        sizes = zip(values.shape[1:], (taken.shape or values.shape)[1:], strict=True)
        if any(wanted is not None and size != wanted for size, wanted in sizes):
            raise InvalidInput.at(
                place,
                f"pictures of {pixels.shape[2]} x {pixels.shape[1]} do not suit the model, which "
                f"takes {taken}; preprocessing.crop, or resize, brings them to one size",
            )


def _axes(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join(['rows', *('any' if size is None else str(size) for size in shape[1:])])}]"
