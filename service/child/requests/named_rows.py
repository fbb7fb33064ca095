"""Rows of JSON by the names of their columns, such as ``[{"age": 41, "income": 2.5}]``."""

import json
import re
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, product
from operator import itemgetter
from typing import Any, NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.child.reading.columns import listed, nearest
from service.child.reading.output_columns import PREFIXES
from service.child.requests.limits import BodyLimits
from service.child.requests.tensors import NEVER_MISSING
from service.errors import InvalidInput, TooLarge, shown
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import ANY_INPUT

NO_NAMES = (
    "this calibration has no column names, because its set held arrays; send each row as a list in "
    "the order of that set, or calibrate with a table: CSV, Parquet or a data frame"
)
NO_CLASSES = (
    "this calibration has no names of classes; send each row as a list in the order of the classes"
)
# What to do about a data frame that was written by its columns.
RECORDS = (
    'send rows by column name as a list, [{"age": 41, …}], as DataFrame.to_dict(orient="records") '
    "gives it"
)
COLUMNS, CLASSES = "columns", "classes"
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_KINDS = {str: "a string", bool: "a boolean", type(None): "null", list: "a list"}
_rows = msgspec.json.Decoder(list[msgspec.Raw])
# By what the names are of: features may be missing, or booleans, which count as 0 and 1.
_row_decoders: dict[str, "msgspec.json.Decoder[Any]"] = {
    COLUMNS: msgspec.json.Decoder(dict[str, float | bool | None]),
    CLASSES: msgspec.json.Decoder(dict[str, float]),
}


class NamedRows:
    """Reads rows by the columns of each input of a model.

    Parameters
    ----------
    columns
        The names of the columns of each input, in order; empty where they are not known.
    place
        The location of the rows in errors.
    of
        What the names are of, in errors.
    may_lack
        The inputs that may lack values.
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[str]],
        *,
        place: str = ANY_INPUT,
        of: str = COLUMNS,
        may_lack: Collection[str] = (),
    ) -> None:
        self._place, self._of = place, of
        self._complete = {
            column for name, own in columns.items() if name not in may_lack for column in own
        }
        self._names = list(dict.fromkeys(chain.from_iterable(columns.values())))
        place_of = {name: place for place, name in enumerate(self._names)}
        self._places = {name: [place_of[one] for one in of] for name, of in columns.items()}
        # Commas in names, which limits of numbers would count as numbers.
        self.n_commas = sum(name.count(",") for name in self._names)

    def read(self, text: bytes, limits: BodyLimits) -> dict[str, Array]:
        """Return the arrays of the inputs; null becomes NaN, and booleans 0 and 1.

        Raises
        ------
        InvalidInput
            If the calibration knows no names, or a row has not just these names, each once with a
            number, of columns also null or a boolean.
        TooLarge
            If there are more rows than is allowed.
        """
        if not self._names:
            raise InvalidInput.at(self._place, NO_NAMES if self._of == COLUMNS else NO_CLASSES)
        limits.of_rows_of(len(self._names) + self.n_commas).check_json(text)
        rows = _rows.decode(text)
        if len(rows) > limits.max_rows:
            raise TooLarge.at(
                self._place, f"expected at most {limits.max_rows} rows, got {len(rows)}"
            )
        values_of, names = itemgetter(*self._names), set(self._names)
        decoder = _row_decoders[self._of]
        values = []
        for number, raw in enumerate(rows):
            try:
                row = decoder.decode(raw)
            except (msgspec.DecodeError, UnicodeDecodeError):
                row = {}
            if row.keys() != names or _n_keys(bytes(raw)) != len(names):
                self._refuse(bytes(raw), f"{self._place}[{number}]")
            values.append(values_of(row))
        matrix = np.array(values, np.float64).reshape(len(rows), len(names))
        self._refuse_missing(np.isnan(matrix))
        return {name: matrix.take(places, axis=1) for name, places in self._places.items()}

    def _refuse_missing(self, is_missing: NDArray[np.bool_]) -> None:
        if not is_missing.any():
            return
        for row, column in np.argwhere(is_missing).tolist():
            name = self._names[column]
            if name in self._complete:
                place = f"{self._place}[{row}].{shown(name)[1:-1]}"
                raise InvalidInput.at(place, NEVER_MISSING)

    def _refuse(self, text: bytes, place: str) -> NoReturn:
        """Refuse a row that breaks a rule."""
        try:
            # Pairs keep names that come twice.
            row: Any = json.loads(text, object_pairs_hook=tuple)
        except (ValueError, RecursionError) as error:
            raise InvalidInput.at(place, "expected an object of numbers by column name") from error
        self._check(row, place)
        raise InvalidInput.at(place, "expected an object of numbers by column name")

    def _check(self, row: Any, place: str) -> None:  # noqa: ANN401 - parsed JSON
        if not isinstance(row, tuple):
            raise InvalidInput.at(place, "expected an object by column name, as the first row is")
        names = [name for name, _ in row]
        doubled = [name for name, count in Counter(names).items() if count > 1]
        if doubled:
            raise InvalidInput.at(place, f"expected each name once, got twice: {listed(doubled)}")
        sent, known = set(names), set(self._names)
        missing = [name for name in self._names if name not in sent]
        unknown = [name for name in names if name not in known]
        if missing or unknown:
            raise InvalidInput.at(
                place,
                f"expected the {len(self._names)} {self._of} of the calibration by name"
                + (f"; missing: {listed(missing)}" if missing else "")
                + (f"; unknown: {listed(unknown)}" if unknown else "")
                + _name_advice(unknown, missing),
            )
        for name, value in row:
            at = f"{place}.{shown(name)[1:-1]}"
            if self._of == COLUMNS and (value is None or isinstance(value, bool)):
                continue
            if type(value) not in (int, float):
                got = _KINDS.get(type(value), "an object")
                raise InvalidInput.at(at, f"expected a number, got {got}")
            if abs(value) > sys.float_info.max:
                raise InvalidInput.at(at, "the number is out of range")


def _name_advice(unknown: Sequence[str], missing: Sequence[str]) -> str:
    """Return the end of a message about wrong names: what to write for one of them."""
    if not missing:
        return "; leave other names out"
    for name, prefix in product(unknown[:1], PREFIXES.values()):
        if name.startswith(prefix) and name.removeprefix(prefix) in missing:
            return f"; write {listed([name.removeprefix(prefix)])}, without `{prefix}`"
    return nearest(unknown, missing)


def _n_keys(text: bytes) -> int:
    """Count the keys of valid JSON whose only strings are keys; equal keys count each."""
    if b"\\" in text:
        text = _ESCAPE.sub(b"", text)
    return text.count(b'"') // 2
