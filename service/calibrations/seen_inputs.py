"""The inputs of a model in its calibration set, with which those of later sets are compared."""

from collections.abc import Mapping
from typing import Any

from howsure.preprocessing import PIXELS, Preprocessing
from howsure.shares import percent
from howsure.statistics.column_middles import ColumnMiddles
from howsure.statistics.compared_inputs import ComparedInputs, NamedColumns, UnlikeRows
from howsure.statistics.input_ranges import ColumnRanges, InputRange, InputRanges
from howsure.statistics.plain import to_plain
from service.runner.messages.dataset import AnyArray, Batch
from service.runner.messages.onnx_models import read_table_columns
from service.runner.messages.reading import COLUMN_MIDDLES, COLUMN_RANGES, INPUT_RANGES

SHOWN_COLUMNS = 10


class SeenInputs:
    """The inputs of the calibration set, with which those of the evaluation set are compared."""

    def __init__(self, model: Mapping[str, Any] | None) -> None:
        self._model = model
        self._seen = InputRanges()
        self._compared: ComparedInputs | None = None

    @property
    def ranges(self) -> dict[str, InputRange]:
        """The ranges of the model's inputs in the calibration set."""
        return model_ranges(self._seen.found, self._model)

    @property
    def _pixels(self) -> dict[str, InputRange]:
        return {name: found for name, found in self._seen.found.items() if name == PIXELS}

    @property
    def _named(self) -> dict[str, NamedColumns]:
        return named_columns(self._seen.columns, self._seen.middles, self._model)

    def described(self) -> dict[str, Any]:
        """Return what the description of the calibration set says about its inputs."""
        named = self._named
        return {
            INPUT_RANGES: to_plain(self.ranges),
            COLUMN_RANGES: {name: _described(found.ranges) for name, found in named.items()},
            COLUMN_MIDDLES: {name: to_plain(found.middles) for name, found in named.items()},
        }

    @property
    def notes(self) -> list[str]:
        """What to tell the caller about columns that lack values."""
        found = []
        for columns in self._named.values():
            named = zip(columns.names, columns.ranges.missing, strict=False)
            lacking = {name: share for name, share in named if share}
            shown = [f"`{name}` {percent(lacking[name])}" for name in list(lacking)[:SHOWN_COLUMNS]]
            more = f" and {len(lacking) - len(shown)} more" if len(lacking) > len(shown) else ""
            if lacking:
                found.append(f"Samples that lack a value, by column: {', '.join(shown)}{more}.")
        return found

    @property
    def unlike(self) -> UnlikeRows | None:
        """Rows of the evaluation set on another scale, if there are any."""
        return None if self._compared is None else self._compared.worst

    def add(self, batch: Batch) -> None:
        """Add samples of the calibration set."""
        self._seen.add(by_input(batch.arrays, self._model))

    def compare(self, batch: Batch) -> None:
        """Compare samples of the evaluation set with the whole calibration set."""
        if self._compared is None:
            self._compared = ComparedInputs(self.ranges | self._pixels, self._named)
        self._compared.add(by_input(batch.arrays, self._model))


def _described(ranges: ColumnRanges) -> dict[str, Any]:
    """Return the ranges as they are stored: without shares of missing values if there are none."""
    return {name: value for name, value in to_plain(ranges).items() if value}


def by_input(
    arrays: Mapping[str, AnyArray], model: Mapping[str, Any] | None
) -> dict[str, AnyArray]:
    """Return the arrays of a batch by input of the model; pictures by `PIXELS`.

    ``model`` is its stored description, None where outputs were uploaded.
    """
    if model is None:
        return {}
    inputs = model["inputs"]
    if model["resolved"].get("preprocessing") and PIXELS in arrays:
        return {PIXELS: arrays[PIXELS]}
    if len(inputs) == len(arrays) == 1:
        arrays = {inputs[0]["name"]: next(iter(arrays.values()))}
    return {one["name"]: arrays[one["name"]] for one in inputs if one["name"] in arrays}


def model_ranges(
    found: Mapping[str, InputRange], model: Mapping[str, Any] | None
) -> dict[str, InputRange]:
    """Return the ranges of inputs of floats, for those of a set; of pixels as the model takes them.

    Integers are names of things more often than amounts.
    """
    if model is None:
        return {}
    if PIXELS not in found or not model["resolved"].get("preprocessing"):
        floats = {one["name"] for one in model["inputs"] if one["dtype"].startswith("float")}
        return {name: own for name, own in found.items() if name in floats}
    (own,) = model["inputs"]
    if not own["dtype"].startswith("float"):
        return {}
    preprocessing = Preprocessing.from_dict(model["resolved"]["preprocessing"])
    return {own["name"]: preprocessing.range_of_values(found[PIXELS])}


def named_columns(
    found: Mapping[str, ColumnRanges],
    middles: Mapping[str, ColumnMiddles],
    model: Mapping[str, Any] | None,
) -> dict[str, NamedColumns]:
    """Return the columns of those inputs whose columns have names, or lack values."""
    if model is None:
        return {}
    names = read_table_columns(model["resolved"]) or {}
    is_only = len(model["inputs"]) == 1
    named = {
        one["name"]: names.get(one["name"]) or (names.get("inputs", ()) if is_only else ())
        for one in model["inputs"]
    }
    columns = {}
    for name, own in found.items():
        has_names = len(named.get(name, ())) == len(own.least)
        if has_names or own.missing:
            shown = named[name] if has_names else tuple(map(str, range(len(own.least))))
            columns[name] = NamedColumns(shown, own, middles.get(name))
    return columns
