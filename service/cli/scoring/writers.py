"""A result as a file that grows: one writer per format, chosen by the ending of its name."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from howsure.npz import write_npz
from service.cli.failure import CommandFailed
from service.reports.csv_table import csv_cell

Column = NDArray[Any]
Columns = dict[str, Column]
WORDS = np.array(["false", "true"])


@dataclass(frozen=True)
class Result:
    """What a result is of; its rows are written in order, some at a time."""

    calibration: str
    calibration_id: str
    input_sha256: str
    n_rows: int


Write = Callable[[Columns], None]
Writer = Callable[[Path, Result], AbstractContextManager[Write]]


def writer_of(output: Path) -> Writer:
    """Return the writer for a file of this name.

    Raises
    ------
    CommandFailed
        If there is none.
    """
    writer = WRITERS.get(output.suffix.lower())
    if writer is None:
        endings = ", ".join(WRITERS)
        raise CommandFailed(f"{output}: expected a name that ends in one of {endings}")
    return writer


@contextmanager
def csv_writer(path: Path, _: Result) -> Iterator[Write]:
    """Write CSV: the shortest decimals that read back as the same numbers, true and false.

    Names that a spreadsheet would take for formulas have an apostrophe before them.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")

        def write(arrays: Columns) -> None:
            columns = _columns(arrays)
            if not file.tell():
                lines.writerow(columns)
            lines.writerows(zip(*map(_as_text, columns.values()), strict=True))

        yield write


@contextmanager
def parquet_writer(path: Path, result: Result) -> Iterator[Write]:
    """Write a table of typed columns; its metadata name the calibration."""
    import pyarrow as pa
    import pyarrow.parquet as pa_parquet

    metadata = {
        "howsure.calibration": result.calibration,
        "howsure.calibration_id": result.calibration_id,
        "howsure.input_sha256": result.input_sha256,
    }
    with path.open("wb") as file:
        writer = None

        def write(arrays: Columns) -> None:
            nonlocal writer
            table = pa.table(_columns(arrays))
            if writer is None:
                writer = pa_parquet.ParquetWriter(file, table.schema.with_metadata(metadata))
            writer.write_table(table.cast(writer.schema))

        yield write
        if writer is not None:
            writer.close()


@contextmanager
def npz_writer(path: Path, result: Result) -> Iterator[Write]:
    """Write arrays as the service names and shapes them, through a file for each."""
    with path.open("wb") as file, TemporaryDirectory(dir=path.parent) as folder:
        arrays: Columns = {}
        n_written = 0

        def write(some: Columns) -> None:
            nonlocal n_written
            for name, array in some.items():
                if name not in arrays:
                    arrays[name] = np.lib.format.open_memmap(
                        Path(folder) / str(len(arrays)),
                        mode="w+",
                        dtype=array.dtype,
                        shape=(result.n_rows, *array.shape[1:]),
                    )
                arrays[name][n_written : n_written + len(array)] = array
            n_written += len(array)

        yield write
        write_npz(file, arrays)


def _columns(arrays: Columns) -> Columns:
    """Return arrays as columns: ``topk_class_1`` is the most probable class."""
    columns: Columns = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = array
        else:
            columns |= {f"{name}_{k}": column for k, column in enumerate(array.T, start=1)}
    return columns


def _as_text(column: Column) -> Iterable[str]:
    if column.dtype == np.bool_:
        column = WORDS[column.astype(np.intp)]
    texts: list[str] = column.astype(np.str_).tolist()
    return map(csv_cell, texts) if column.dtype.kind == "U" else texts


WRITERS: Mapping[str, Writer] = {
    ".csv": csv_writer,
    ".parquet": parquet_writer,
    ".npz": npz_writer,
}
