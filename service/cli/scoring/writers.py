"""A result as a file: one writer per format, chosen by the ending of its name."""

import csv
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from service.cli.failure import CommandFailed
from service.cli.scoring.columns import Column, Columns, flat, named
from service.cli.scoring.parts import Parts

WORDS = np.array(["false", "true"])


@dataclass(frozen=True)
class Result:
    """All parts, to be read any number of times; memory holds one of them."""

    parts: Parts
    classes: tuple[str, ...]
    calibration: str

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return self.parts.manifest.n_rows

    def __iter__(self) -> Iterator[Columns]:
        manifest = self.parts.manifest
        for part in range(manifest.n_parts):
            with self.parts.reading(part) as stored:
                yield named(stored, manifest.rows_of(part), self.classes)


Writer = Callable[[Path, Result], None]


def writer_of(output: Path) -> Writer:
    """Return what writes a file of this name.

    Raises
    ------
    CommandFailed
        If there is none, or a library is missing.
    """
    writer = WRITERS.get(output.suffix.lower())
    if writer is None:
        endings = ", ".join(WRITERS)
        raise CommandFailed(f"{output}: expected a name that ends in one of {endings}")
    if writer is write_parquet and find_spec("pyarrow") is None:
        raise CommandFailed("to write Parquet, `pip install howsure[tables]`")
    return writer


def write_csv(path: Path, result: Result) -> None:
    """Write text: the shortest numbers that are read as the same again, true and false."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        for number, columns in enumerate(map(flat, result)):
            if number == 0:
                lines.writerow(columns)
            lines.writerows(zip(*map(_as_text, columns.values()), strict=True))


def write_parquet(path: Path, result: Result) -> None:
    """Write a table of typed columns; its metadata name the calibration."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra
    import pyarrow.parquet as pa_parquet  # noqa: PLC0415 - an optional extra

    manifest = result.parts.manifest
    metadata = {
        "howsure.calibration": manifest.calibration,
        "howsure.calibration_id": manifest.calibration_id,
        "howsure.input_sha256": manifest.input_sha256,
    }
    tables = (pa.table(flat(columns)) for columns in result)
    first = next(tables)
    schema = first.schema.with_metadata(metadata)
    with pa_parquet.ParquetWriter(path, schema) as writer:
        writer.write_table(first.cast(schema))
        for table in tables:
            writer.write_table(table.cast(schema))


def write_npz(path: Path, result: Result) -> None:
    """Write arrays as the service names and shapes them, one after the other."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, found in next(iter(result)).items():
            shape = (result.n_rows, *found.shape[1:])
            with _member(archive, name, found, shape) as write:
                for columns in result:
                    write(columns[name])


@contextmanager
def _member(
    archive: zipfile.ZipFile, name: str, like: Column, shape: tuple[int, ...]
) -> Iterator[Callable[[Column], Any]]:
    """Begin an array of a shape; no date, so that the same arrays are the same bytes."""
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
        header = {
            "descr": np.lib.format.dtype_to_descr(like.dtype),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(member, header)
        yield lambda array: member.write(np.ascontiguousarray(array).tobytes())


def _as_text(column: Column) -> Iterable[str]:
    if column.dtype == np.bool_:
        column = WORDS[column.astype(np.intp)]
    found: list[str] = column.astype(np.str_).tolist()
    return found


WRITERS: Mapping[str, Writer] = {
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".npz": write_npz,
}
