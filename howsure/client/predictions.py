"""Predictions: requests for rows, and answers as arrays."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from howsure.client.frames import (
    OUTPUT_PREFIXES,
    PARQUET,
    Frame,
    as_pandas,
    data_frame,
    html_table,
    is_frame,
    output_array,
    output_table,
    parquet_bytes,
    slices,
)
from howsure.client.request import Answer, FilePart, Request, address_of, json_bytes
from howsure.client.resources import Calibration, reference_of
from howsure.client.transport import Sender
from howsure.client.uploads import Arrays, npz_bytes, read_npz

Array = NDArray[Any]
ABSTAIN = "abstain_"
# In notebooks.
SHOWN_ROWS = 10


@dataclass(frozen=True)
class EventPredictions:
    """Answers to one event: the label is among the k most probable classes.

    Attributes
    ----------
    probability, lower, upper : float32, shape (n,)
        The calibrated probability that the event holds, and its interval.
    uncertainty : float32, shape (n,)
        The value of the measure; larger is more uncertain.
    bin : int64, shape (n,)
        The bin of that value; 0 is the most certain.
    """

    probability: Array
    lower: Array
    upper: Array
    uncertainty: Array
    bin: Array


@dataclass(frozen=True, repr=False)
class Predictions:
    """Predictions of n rows, in their order.

    Attributes
    ----------
    arrays
        All arrays, by the names of docs/http.md; ``predictions["top1_probability"]`` is one.
    calibration_id, reference
        The calibration that answered: its id, and ``name@version``.
    classes
        Names of all classes, by index.
    by_position
        Whether the calibration has column names and the rows came without: they were read in the
        order of the calibration table.
    """

    arrays: Arrays
    calibration_id: str
    reference: str
    classes: Sequence[str]
    by_position: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def __repr__(self) -> str:
        return f"Predictions({self.reference}, {len(self)} rows, {', '.join(self.arrays)})"

    def _repr_html_(self) -> str:
        shown = min(len(self), SHOWN_ROWS)
        columns = {"row": [str(row) for row in range(shown)], "label": self.label[:shown]}
        for k, event in self.events.items():
            columns[f"Top-{k}"] = [
                f"{event.probability[row]:.3f} ({event.lower[row]:.3f} to {event.upper[row]:.3f})"
                for row in range(shown)
            ]
        for name, array in self.arrays.items():
            if array.dtype == np.bool_:
                columns[name] = ["yes" if flag else "" for flag in array[:shown]]
        more = f", the first {shown}" if len(self) > shown else ""
        return html_table(columns, f"{self.reference}: {len(self)} rows{more}")

    def to_pandas(self) -> Frame:
        """Return a data frame with a row each: the label, and the arrays by their names.

        An array of several values a row becomes several columns, ``topk_class_1`` and so on.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns: dict[str, Any] = {"label": self.label} if "class" in self.arrays else {}
        for name, array in self.arrays.items():
            if array.ndim == 1:
                columns[name] = array
            else:
                columns |= {f"{name}_{i}": values for i, values in enumerate(array.T, start=1)}
        return data_frame(columns)

    @property
    def class_(self) -> Array:
        """The most probable class: int64, shape (n,).

        Raises
        ------
        AttributeError
            If these are predictions for scores, which have no classes.
        """
        if "class" not in self.arrays:
            raise AttributeError("predictions for scores have no classes; use top1.probability")
        return self.arrays["class"]

    @property
    def label(self) -> list[str]:
        """The name of the most probable class."""
        return [self.classes[index] for index in self.class_]

    @property
    def topk_class(self) -> Array:
        """The most probable classes, at most five: int64, shape (n, m)."""
        return self.arrays["topk_class"]

    @property
    def topk_score(self) -> Array:
        """The model's own softmax of these classes, not calibrated: float32, shape (n, m)."""
        return self.arrays["topk_score"]

    @property
    def topk_probability(self) -> Array:
        """A calibrated probability of each of these classes: float32, shape (n, m).

        That of Top-1 for the first; the others share the rest in proportion to their scores.

        Raises
        ------
        KeyError
            If the calibration has no Top-1.
        """
        return self.arrays["topk_probability"]

    @property
    def events(self) -> Mapping[int, EventPredictions]:
        """All events of the calibration, by k."""
        found = (re.fullmatch(r"top(\d+)_probability", name) for name in self.arrays)
        return {k: self.event(k) for k in (int(match[1]) for match in found if match)}

    def event(self, k: int) -> EventPredictions:
        """Return one event.

        Raises
        ------
        KeyError
            If the calibration has no Top-k.
        """
        parts = ("probability", "lower", "upper", "uncertainty", "bin")
        return EventPredictions(*(self.arrays[f"top{k}_{part}"] for part in parts))

    @property
    def top1(self) -> EventPredictions:
        """The event that `class_` is right."""
        return self.event(1)

    @property
    def top5(self) -> EventPredictions:
        """The event that the label is among the five most probable classes."""
        return self.event(5)

    @property
    def out_of_distribution(self) -> Array | None:
        """Whether a row is less certain than nearly all calibration samples: bool, shape (n,)."""
        return self.arrays.get("out_of_distribution")

    @property
    def abstain(self) -> Mapping[str, Array]:
        """Whether to abstain from a row, by ``max_risk``: bool, shape (n,)."""
        return {
            name.removeprefix(ABSTAIN): array
            for name, array in self.arrays.items()
            if name.startswith(ABSTAIN)
        }

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of several answers, in order."""
        first = parts[0]
        if len(parts) == 1:
            return first
        arrays = {
            name: np.concatenate([part.arrays[name] for part in parts]) for name in first.arrays
        }
        return replace(first, arrays=arrays)


JSON = "application/json"
NPZ = "application/x-npz"
# Limits of one request, far below the default limits of a service.
MOST_ROWS = 1024
MOST_BYTES = 8 * 2**20
# The service starts a process to read a table, so fewer requests are quicker.
MOST_TABLE_ROWS = 5000
MOST_PICTURES = 128
# As the service allows.
SUM_TOLERANCE = 1e-3
ONE_OF = "expected exactly one of inputs, logits, probabilities, pixels, scores and pictures"

NamedRow: TypeAlias = Mapping[str, float]
Inputs: TypeAlias = ArrayLike | Mapping[str, ArrayLike] | Sequence[NamedRow] | None
Picture: TypeAlias = bytes | str | os.PathLike[str]


def requests_of(
    kind: str,
    rows: Any,  # noqa: ANN401 - as `kind` says
    supplied: Mapping[str, ArrayLike] | None,
    size: int | None,
) -> Iterator[Request]:
    """Return requests for ``size`` rows each, None for a suitable number; they name no calibration.

    Raises
    ------
    ValueError
        If there are no pictures, or the rows are not rows.
    """
    rows = as_pandas(rows)
    if kind == "pictures":
        if not rows:
            raise ValueError("expected at least one picture, got none")
        return picture_requests(rows, size)
    if supplied is None and is_frame(rows) and kind == "inputs":
        return frame_requests(rows, size)
    if supplied is None and is_frame(rows) and kind in OUTPUT_PREFIXES:
        return frame_requests(output_table(rows, kind), size)
    if kind == "inputs" and (named := named_rows(rows)):
        return named_row_requests(named, supplied, size)
    return array_requests(rows_of(kind, rows, supplied), size)


def array_requests(arrays: Arrays, rows: int | None) -> Iterator[Request]:
    """Yield requests for ``rows`` rows each, None for a suitable number; they name no calibration.

    ``arrays`` are named as in an .npz.
    """
    count = len(next(iter(arrays.values())))
    row_bytes = sum(array.nbytes for array in arrays.values()) // max(count, 1)
    size = rows or max(1, min(MOST_ROWS, MOST_BYTES // max(row_bytes, 1)))
    headers = {"Content-Type": NPZ, "Accept": NPZ}
    for start in range(0, max(count, 1), size):
        part = {name: array[start : start + size] for name, array in arrays.items()}
        yield Request("POST", "/predict", headers=headers, content=npz_bytes(part))


def frame_requests(frame: Frame, rows: int | None) -> Iterator[Request]:
    """Yield requests for ``rows`` rows each, None for a suitable number, as tables with names."""
    row_bytes = int(frame.memory_usage(index=False).sum()) // max(len(frame), 1)
    size = rows or max(1, min(MOST_TABLE_ROWS, MOST_BYTES // max(row_bytes, 1)))
    headers = {"Content-Type": PARQUET, "Accept": NPZ}
    for part in slices(frame, size):
        yield Request("POST", "/predict", headers=headers, content=parquet_bytes(part))


def named_rows(given: object) -> Sequence[NamedRow]:
    """Return rows that are mappings by column name; none if they are anything else.

    A mapping of single values is one row; one of arrays has the inputs of a model.
    """
    if isinstance(given, Mapping):
        return [given] if given and all(np.ndim(value) == 0 for value in given.values()) else []
    if not isinstance(given, Sequence) or isinstance(given, str | bytes) or not given:
        return []
    return given if isinstance(given[0], Mapping) else []


def named_row_requests(
    rows: Sequence[NamedRow],
    supplied: Mapping[str, ArrayLike] | None,
    size: int | None,
) -> Iterator[Request]:
    """Yield requests for ``size`` rows each, None for a suitable number, in JSON without a name."""
    columns = {name: np.asarray(column) for name, column in (supplied or {}).items()}
    headers = {"Content-Type": JSON, "Accept": NPZ}
    for start in range(0, len(rows), size or MOST_ROWS):
        part = slice(start, start + (size or MOST_ROWS))
        body: dict[str, Any] = {"inputs": [_numbers(row) for row in rows[part]]}
        if columns:
            body["supplied"] = {name: column[part].tolist() for name, column in columns.items()}
        yield Request("POST", "/predict", headers=headers, content=json_bytes(body))


def _numbers(row: NamedRow) -> NamedRow:
    """Return a row with 0 and 1 for booleans, as in a table; anything else as it is."""
    if not isinstance(row, Mapping):
        return row
    return {name: int(v) if isinstance(v, bool | np.bool_) else v for name, v in row.items()}


def picture_requests(pictures: Sequence[Picture], rows: int | None) -> Iterator[Request]:
    """Yield requests for some picture files each; only those of one request are in memory."""
    parts: list[FilePart] = []
    held = 0
    for number, picture in enumerate(pictures):
        name, content = _picture(picture, number)
        if parts and (len(parts) == (rows or MOST_PICTURES) or held > MOST_BYTES):
            yield Request("POST", "/predict", headers={"Accept": NPZ}, parts=parts)
            parts, held = [], 0
        parts.append(("picture", (name, content)))
        held += len(content)
    yield Request("POST", "/predict", headers={"Accept": NPZ}, parts=parts)


def _picture(picture: Picture, number: int) -> tuple[str, bytes]:
    """Return a picture's name, which errors mention, and its bytes."""
    if isinstance(picture, bytes):
        return f"picture {number}", picture
    path = Path(picture)
    return path.name, path.read_bytes()


def rows_of(
    kind: str,
    rows: Any,  # noqa: ANN401 - as `kind` says
    supplied: Mapping[str, ArrayLike] | None,
) -> Arrays:
    """Return the rows as arrays by name.

    Raises
    ------
    ValueError
        If lengths differ, or if it is not clear whether probabilities are those of one row.
    """
    if kind == "inputs":
        given = dict(rows) if isinstance(rows, Mapping) else {kind: rows}
    else:
        given = {kind: output_array(rows, kind)}
    if kind == "probabilities":
        _refuse_one_row(rows)
    given |= {f"uncertainty_{name}": column for name, column in (supplied or {}).items()}
    arrays = {name: np.asarray(array) for name, array in given.items()}
    for name, array in arrays.items():
        if not array.ndim:
            sent = given[name] if kind == "inputs" or name != kind else rows
            raise ValueError(
                f"{name}: expected rows as an array, a list or a data frame, "
                f"got {type(sent).__name__}"
            )
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"expected arrays with the same number of rows, got {lengths}")
    return arrays


def _refuse_one_row(probabilities: ArrayLike) -> None:
    """Refuse a list of probabilities that may be one row, or those of class 1 of several rows."""
    array = np.asarray(probabilities)
    is_list = array.ndim == 1 and len(array) > 1 and array.dtype.kind == "f"
    if is_list and abs(float(array.sum()) - 1.0) <= SUM_TOLERANCE:
        raise ValueError(
            "probabilities: expected a list of rows, got numbers that sum to 1; for one row write "
            "[[…]], for several rows of two classes the probabilities of both classes"
        )


async def predict(
    sender: Sender,
    calibration: Calibration | str,
    requests: Iterable[Request],
    class_names: dict[str, tuple[str, ...]],
    seconds: float | None,
) -> Predictions:
    """Send all requests and join the answers; ``class_names`` caches class names by calibration."""
    reference, parts = reference_of(calibration), []
    timeout = {} if seconds is None else {"Timeout": f"{seconds:g}"}
    for request in requests:
        named = replace(request, headers={**request.headers, **timeout})
        if request.headers.get("Content-Type") == JSON:
            head = json.dumps({"calibration": reference})[:-1].encode()
            named = replace(named, content=head + b", " + (request.content or b"")[1:])
        else:
            named = replace(named, params={"calibration": reference})
        answer = await sender.send(named)
        served = _served_calibration(answer)
        # The same version answers all rows, even if a newer one appears meanwhile.
        reference = served["id"]
        if reference not in class_names:
            found = await sender.send(Request("GET", address_of(reference)))
            class_names[reference] = Calibration.of(found.json()).classes
        name = f"{served['name']}@{served['version']}"
        arrays, classes = read_npz(answer.content), class_names[reference]
        parts.append(Predictions(arrays, reference, name, classes, "columns" in served))
    return Predictions.joined(parts)


def _served_calibration(answer: Answer) -> dict[str, str]:
    """Return the calibration that answered, from the header of the response."""
    pairs = answer.headers["howsure-calibration"].split("; ")
    return dict(pair.split("=", 1) for pair in pairs)
