"""Data frames of pandas, which is imported only for `data_frame`."""

from collections.abc import Iterator, Mapping
from html import escape
from importlib import import_module
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

Frame: TypeAlias = Any
LABEL = "label"
PARQUET = "application/vnd.apache.parquet"


def is_frame(given: object) -> bool:
    """Tell whether this is a data frame of pandas."""
    return all(hasattr(given, name) for name in ("to_parquet", "iloc", "columns"))


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
    return frame.assign(**{LABEL: getattr(labels, "to_numpy", lambda: labels)()})


OUTPUT_PREFIXES = {"logits": "logit_", "probabilities": "prob_"}


def output_table(frame: Frame, kind: str) -> Frame:
    """Return outputs under the names of a table's columns, such as ``prob_cat`` for ``cat``."""
    prefix = OUTPUT_PREFIXES[kind]
    return frame.rename(columns=lambda c: c if str(c).startswith(prefix) else f"{prefix}{c}")


def parquet_bytes(frame: Frame) -> bytes:
    """Return a frame as Parquet; its index is left out."""
    content: bytes = frame.rename(columns=str).to_parquet(index=False, engine="pyarrow")
    return content


def slices(frame: Frame, rows: int) -> Iterator[Frame]:
    """Yield some rows each; a frame without rows as it is."""
    for start in range(0, max(len(frame), 1), rows):
        yield frame.iloc[start : start + rows]


def data_frame(columns: Mapping[str, Any]) -> Frame:
    """Return a data frame of these columns.

    Raises
    ------
    ImportError
        If pandas is not installed.
    """
    return import_module("pandas").DataFrame(columns)


def html_table(columns: Mapping[str, list[str]], caption: str) -> str:
    """Return a table for notebooks; its texts are escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for cells in zip(*columns.values(), strict=True)
    )
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{rows}</table>"
