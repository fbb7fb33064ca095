"""Rows to predict, as requests: arrays, tables, rows by column name, or pictures."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from howsure.client.frames import (
    INPUTS,
    OUTPUT_PREFIXES,
    PARQUET,
    Frame,
    as_pandas,
    is_frame,
    output_array,
    output_table,
    parquet_bytes,
    slices,
)
from howsure.client.labels import is_missing
from howsure.client.request import FilePart, Request, json_bytes
from howsure.client.uploads import Arrays
from howsure.npz import npz_bytes

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
# What rows by column or class name may hold.
NAMED_KINDS = (INPUTS, *OUTPUT_PREFIXES)

NamedRow: TypeAlias = Mapping[str, float]
Inputs: TypeAlias = ArrayLike | Mapping[str, ArrayLike] | Sequence[NamedRow] | None
Picture: TypeAlias = bytes | str | os.PathLike[str]


def requests_of(
    given: Mapping[str, Any], supplied: Mapping[str, ArrayLike] | None, size: int | None
) -> Iterator[Request]:
    """Return requests for ``size`` rows each, None for a suitable number; they name no calibration.

    ``given`` has the rows by their kind; all kinds but one must be None.

    Raises
    ------
    ValueError
        If there are no rows or several kinds, no pictures or arrays as pictures, or the rows are
        not rows.
    """
    sent = {kind: as_pandas(rows) for kind, rows in given.items() if rows is not None}
    if len(sent) != 1:
        raise ValueError(ONE_OF)
    ((kind, rows),) = sent.items()
    if kind == "pictures":
        if isinstance(rows, bytes | str | os.PathLike):
            rows = [rows]
        if hasattr(rows, "ndim"):
            raise ValueError("pictures are files, as paths or bytes; send arrays as pixels")
        if not rows:
            raise ValueError("expected at least one picture, got none")
        return _picture_requests(rows, size)
    if supplied is None and is_frame(rows) and kind == "inputs":
        return _frame_requests(rows, size)
    if supplied is None and is_frame(rows) and kind in OUTPUT_PREFIXES:
        return _frame_requests(output_table(rows, kind), size)
    if kind in NAMED_KINDS and (named := _named_rows(rows)):
        return _named_row_requests(kind, named, supplied, size)
    return _array_requests(_arrays(sent, supplied), size)


def _array_requests(arrays: Arrays, rows: int | None) -> Iterator[Request]:
    """Yield requests for ``rows`` rows each, None for a suitable number; they name no calibration.

    ``arrays`` are named as in an .npz.
    """
    count = len(next(iter(arrays.values())))
    row_bytes = sum(array.nbytes for array in arrays.values()) // max(count, 1)
    size = rows or max(1, min(MOST_ROWS, MOST_BYTES // max(row_bytes, 1)))
    headers = {"Content-Type": NPZ, "Accept": NPZ}
    for start in range(0, max(count, 1), size):
        part = {name: array[start : start + size] for name, array in arrays.items()}
        content = npz_bytes(part)
        yield Request("POST", "/predict", headers=headers, content=content, first_row=start)


def _frame_requests(frame: Frame, rows: int | None) -> Iterator[Request]:
    """Yield requests for ``rows`` rows each, None for a suitable number, as tables with names."""
    row_bytes = int(frame.memory_usage(index=False).sum()) // max(len(frame), 1)
    size = rows or max(1, min(MOST_TABLE_ROWS, MOST_BYTES // max(row_bytes, 1)))
    headers = {"Content-Type": PARQUET, "Accept": NPZ}
    for number, part in enumerate(slices(frame, size)):
        content, start = parquet_bytes(part), number * size
        yield Request("POST", "/predict", headers=headers, content=content, first_row=start)


def _named_rows(given: object) -> Sequence[NamedRow]:
    """Return rows that are mappings by column name; none if they are anything else.

    A mapping of single values is one row; one of arrays has the inputs of a model.
    """
    if isinstance(given, Mapping):
        return [given] if given and all(np.ndim(value) == 0 for value in given.values()) else []
    if not isinstance(given, Sequence) or isinstance(given, str | bytes) or not given:
        return []
    return given if isinstance(given[0], Mapping) else []


def _named_row_requests(
    kind: str,
    rows: Sequence[NamedRow],
    supplied: Mapping[str, ArrayLike] | None,
    size: int | None,
) -> Iterator[Request]:
    """Yield requests for ``size`` rows each, None for a suitable number, in JSON without a name."""
    columns = {name: np.asarray(column) for name, column in (supplied or {}).items()}
    headers = {"Content-Type": JSON, "Accept": NPZ}
    for start in range(0, len(rows), size or MOST_ROWS):
        part = slice(start, start + (size or MOST_ROWS))
        body: dict[str, Any] = {kind: [_numbers(row) for row in rows[part]]}
        if columns:
            body["supplied"] = {name: column[part].tolist() for name, column in columns.items()}
        content = json_bytes(body)
        yield Request("POST", "/predict", headers=headers, content=content, first_row=start)


def _numbers(row: NamedRow) -> NamedRow:
    """Return a row with 0 and 1 for booleans, None for NaN; anything else as it is."""
    if not isinstance(row, Mapping):
        return row
    return {name: _number(value) for name, value in row.items()}


def _number(value: Any) -> Any:  # noqa: ANN401 - whatever a row has
    if isinstance(value, bool | np.bool_):
        return int(value)
    return None if is_missing(value) else value


def _picture_requests(pictures: Sequence[Picture], rows: int | None) -> Iterator[Request]:
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
    if not isinstance(picture, str | os.PathLike):
        kind = type(picture).__name__
        raise TypeError(
            f"picture {number}: expected a path or the bytes of a file, got {kind}; "
            "send arrays of pixels as pixels"
        )
    path = Path(picture)
    if path.is_dir():
        raise ValueError(
            f"picture {number}: expected a file, got the folder {path}; list its files"
        )
    return path.name, path.read_bytes()


def _arrays(sent: Mapping[str, Any], supplied: Mapping[str, ArrayLike] | None) -> Arrays:
    """Return rows of one kind as arrays by name.

    Raises
    ------
    ValueError
        If lengths differ, or if it is not clear whether probabilities are those of one row.
    """
    ((kind, rows),) = sent.items()
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
            found = given[name] if kind == "inputs" or name != kind else rows
            raise ValueError(
                f"{name}: expected rows as an array, a list or a data frame, "
                f"got {type(found).__name__}"
            )
        if array.dtype.kind == "U":
            fix = "; send picture files as pictures" if kind == "inputs" else ""
            raise ValueError(f"{name}: expected numbers, got text{fix}")
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
