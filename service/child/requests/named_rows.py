"""Rows of JSON by the names of their columns, such as ``[{"age": 41, "income": 2.5}]``."""

import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NoReturn

import msgspec
import numpy as np

from service.child.reading.columns import listed, nearest
from service.child.requests.limits import BodyLimits
from service.child.requests.tensors import ANY_INPUT, Array
from service.errors import InvalidInput, TooLarge, shown

NO_NAMES = (
    "this calibration has no column names, because its set held arrays; send each row as a list in "
    "the order of that set, or calibrate with a table: CSV, Parquet or a data frame"
)
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_KINDS = {str: "a string", bool: "a boolean", type(None): "null", list: "a list"}
_decoder = msgspec.json.Decoder(list[dict[str, float]])


class NamedRows:
    """Reads rows by the columns of each input of a model.

    Parameters
    ----------
    columns
        The names of the columns of each input, in order; empty where they are not known.
    """

    def __init__(self, columns: Mapping[str, Sequence[str]]) -> None:
        self._columns = columns
        self._names = list(dict.fromkeys(chain.from_iterable(columns.values())))
        # Commas in names, which limits of numbers would count as numbers.
        self.n_commas = sum(name.count(",") for name in self._names)

    def read(self, text: bytes, limits: BodyLimits) -> dict[str, Array]:
        """Return the arrays of the inputs.

        Raises
        ------
        InvalidInput
            If the calibration knows no names, or a row has not just these names, each once with a
            number.
        TooLarge
            If there are more rows than is allowed.
        """
        if not self._names:
            raise InvalidInput.at(ANY_INPUT, NO_NAMES)
        limits.of_rows_of(len(self._names) + self.n_commas).check_json(text)
        try:
            rows = _decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._refuse(text, shown(str(error))[1:-1])
        if len(rows) > limits.max_rows:
            raise TooLarge.at(
                ANY_INPUT, f"expected at most {limits.max_rows} rows, got {len(rows)}"
            )
        names = set(self._names)
        if any(row.keys() != names for row in rows) or _n_keys(text) != len(names) * len(rows):
            self._refuse(text, "expected rows by column name")
        return {
            name: np.array([_values(row, of) for row in rows], np.float64)
            for name, of in self._columns.items()
        }

    def _refuse(self, text: bytes, reason: str) -> NoReturn:
        """Refuse the first row that breaks a rule; ``reason`` is that of the fast reader."""
        try:
            # Lists of pairs keep names that come twice.
            rows: Any = json.loads(text, object_pairs_hook=tuple)
        except (ValueError, RecursionError) as error:
            raise InvalidInput.at(ANY_INPUT, reason) from error
        for number, row in enumerate(rows):
            self._check(row, f"{ANY_INPUT}[{number}]")
        raise InvalidInput.at(ANY_INPUT, reason)

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
                f"expected the {len(self._names)} columns of the calibration by name"
                + (f"; missing: {listed(missing)}" if missing else "")
                + (f"; unknown: {listed(unknown)}" if unknown else "")
                + (nearest(missing, unknown) if missing else "; leave other names out"),
            )
        for name, value in row:
            at = f"{place}.{shown(name)[1:-1]}"
            if type(value) not in (int, float):
                got = _KINDS.get(type(value), "an object")
                raise InvalidInput.at(at, f"expected a number, got {got}")
            if abs(value) > sys.float_info.max:
                raise InvalidInput.at(at, "the number is out of range")


def _values(row: Mapping[str, float], names: Sequence[str]) -> Sequence[float]:
    found = itemgetter(*names)(row)
    return found if len(names) > 1 else (found,)


def _n_keys(text: bytes) -> int:
    """Count the keys of valid JSON whose only strings are keys; equal keys count each."""
    if b"\\" in text:
        text = _ESCAPE.sub(b"", text)
    return text.count(b'"') // 2
