"""Data frames of pandas, which is imported only for `data_frame`."""

from collections.abc import Iterator, Mapping
from html import escape
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Frame: TypeAlias = Any
LABEL = "label"
INPUTS, SCORES = "inputs", "scores"
PAIRS = "pairs"  # a calibration of scores
PARQUET = "application/vnd.apache.parquet"


def is_frame(given: object) -> bool:
    """Tell whether this is a data frame of pandas."""
    return all(hasattr(given, name) for name in ("to_parquet", "iloc", "columns"))


def as_pandas(given: Any) -> Any:  # noqa: ANN401 - anything else is returned as it is
    """Return a frame of polars or a table of Arrow as a data frame of pandas, with its names."""
    if hasattr(given, "to_pandas") and hasattr(given, "columns") and not is_frame(given):
        return given.to_pandas()
    return given


def with_labels(frame: Frame, labels: ArrayLike) -> Frame:
    """Return the frame with the labels as its column ``label``.

    Raises
    ------
    ValueError
        If it has such a column, or another number of rows.
    """
    if LABEL in frame.columns:
        raise ValueError(
            f"the data frame has a column {LABEL!r} already: send it alone, or without this column"
        )
    # By position: the index of a Series may differ.
    return frame.assign(**{LABEL: np.asarray(labels)})


OUTPUT_PREFIXES = {"logits": "logit_", "probabilities": "prob_"}
SCORE_COLUMNS = ("score", "confidence")
# Names of the only column of probabilities.
BINARY = ("prob", "p", "probability")


def output_table(frame: Frame, kind: str) -> Frame:
    """Return outputs under the names of a table's columns, such as ``prob_cat`` for ``cat``.

    A single column of probabilities is that of class 1 of two. All may begin with ``p_``, too.
    Columns of ids and text, and all columns beside outputs that have such names, keep theirs.
    """
    prefix = OUTPUT_PREFIXES[kind]
    if any(str(name).startswith(prefix) or str(name) in BINARY for name in frame.columns):
        return frame
    if kind == "probabilities" and len(frame.columns) == 1:
        return frame.set_axis(["prob"], axis=1)
    if kind == "probabilities" and all(str(name).startswith("p_") for name in frame.columns):
        return frame
    floats = {name for name in frame.columns if str(frame[name].dtype).lower().startswith("float")}
    return frame.rename(columns=lambda name: f"{prefix}{name}" if name in floats else name)


def output_array(rows: Any, kind: str) -> NDArray[Any]:  # noqa: ANN401 - arrays, lists, frames
    """Return outputs or scores of pairs as an array, as the service takes them.

    Probabilities of shape (n,) are those of class 1 of two. A column of scores becomes flat.

    Raises
    ------
    ValueError
        If it is not clear which column of a data frame has the scores, or a probability of class 1
        is not from 0 to 1.
    """
    if kind == SCORES and is_frame(rows) and len(rows.columns) > 1:
        found = [name for name in SCORE_COLUMNS if name in rows.columns]
        if not found:
            raise ValueError(
                f"scores: expected one number per row, got a data frame of {len(rows.columns)} "
                "columns; pass the column of scores"
            )
        rows = rows[found[0]]
    array = np.asarray(rows)
    if kind == "probabilities" and array.ndim == 1:
        return _both_classes(array.astype(np.float64))
    if kind == SCORES and array.shape[1:] == (1,):
        array = array[:, 0]
    return array


def _both_classes(p: NDArray[np.float64]) -> NDArray[np.float64]:
    bad = ~((p >= 0.0) & (p <= 1.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"probabilities[{row}]: expected a probability from 0 to 1, that of class 1, got "
            f"{p[row]}; divide percentages by 100"
        )
    return np.stack([1.0 - p, p], axis=1)


def parquet_bytes(frame: Frame) -> bytes:
    """Return a frame as Parquet; its index is left out."""
    content: bytes = frame.rename(columns=str).to_parquet(index=False, engine="pyarrow")
    return content


def slices(frame: Frame, rows: int) -> Iterator[Frame]:
    """Yield some rows each; a frame without rows as it is."""
    for start in range(0, max(len(frame), 1), rows):
        yield frame.iloc[start : start + rows]


def index_of(rows: object) -> Any:  # noqa: ANN401 - pandas has no types here
    """Return the index of a data frame or series of pandas; None for anything else."""
    return rows.index if hasattr(rows, "iloc") and hasattr(rows, "index") else None


def data_frame(columns: Mapping[str, Any], index: Any = None) -> Frame:  # noqa: ANN401 - as above
    """Return a data frame of these columns, numbered from 0 without an index.

    Raises
    ------
    ImportError
        If pandas is not installed.
    """
    return import_module("pandas").DataFrame(columns, index=index)


def html_table(columns: Mapping[str, list[str]], caption: str) -> str:
    """Return a table for notebooks; its texts are escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for cells in zip(*columns.values(), strict=True)
    )
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{rows}</table>"
