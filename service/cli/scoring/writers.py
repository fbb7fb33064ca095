"""A result as a file: one writer per format, chosen by the ending of its name."""

import csv
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.child.reading.columns import CORRECT_COLUMN
from service.cli.failure import CommandFailed
from service.cli.scoring.parts import Parts
from service.reports.csv_table import csv_cell

Column = NDArray[Any]
Columns = dict[str, Column]
ROW, FILE = "row", "file"
CLASS, LABEL = "class", "label"  # the predicted one: its index and its name
TRUE_CLASS, TRUE_LABEL = "true_class", "true_label"
OUT_OF_DISTRIBUTION = "out_of_distribution"
WORDS = np.array(["false", "true"])


@dataclass(frozen=True)
class Result:
    """All parts, to be read any number of times; memory holds one of them."""

    parts: Parts
    classes: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return self.parts.manifest.n_rows

    @property
    def names(self) -> list[str]:
        """The arrays of every part, in the order they are written in.

        First ``row``, what the input says of it (``file``, ``true_class`` and ``true_label``, of
        pairs ``correct``), ``class`` and ``label``, which pairs do not have; then the others, in
        the order of the service.
        """
        with self.parts.reading(0) as stored:
            front = [name for name in (FILE, TRUE_CLASS, CORRECT_COLUMN) if name in stored]
            rest = [name for name in stored if name not in {*front, CLASS}]
            if TRUE_CLASS in front:
                front.insert(front.index(TRUE_CLASS) + 1, TRUE_LABEL)
            classes = [CLASS, LABEL] if CLASS in stored else []
        return [ROW, *front, *classes, *rest]

    def n_out_of_distribution(self) -> int:
        """Count the rows out of distribution; 0 where the calibration cannot tell."""
        if OUT_OF_DISTRIBUTION not in self.names:
            return 0
        return sum(int(np.count_nonzero(of)) for of in self.array(OUT_OF_DISTRIBUTION))

    def array(self, name: str) -> Iterator[Column]:
        """Yield one array, part by part."""
        manifest = self.parts.manifest
        for part in range(manifest.n_parts):
            rows = manifest.rows_of(part)
            with self.parts.reading(part) as stored:
                if name == ROW:
                    yield np.arange(rows.start, rows.stop, dtype=np.int64)
                elif name in (LABEL, TRUE_LABEL):
                    index = stored[CLASS if name == LABEL else TRUE_CLASS]
                    # All parts get the width of the widest name.
                    yield np.array(self.classes, dtype=np.str_)[index]
                else:
                    yield stored[name]

    def tables(self) -> Iterator[Columns]:
        """Yield all arrays as columns, part by part: ``topk_class_1`` is the most probable."""
        names = self.names
        for arrays in zip(*(self.array(name) for name in names), strict=True):
            columns: Columns = {}
            for name, array in zip(names, arrays, strict=True):
                if array.ndim == 1:
                    columns[name] = array
                else:
                    columns |= {f"{name}_{k}": of for k, of in enumerate(array.T, start=1)}
            yield columns


Writer = Callable[[Path, Result], None]


def writer_of(output: Path) -> Writer:
    """Return the writer for a file of this name.

    Raises
    ------
    CommandFailed
        If there is none, or a library is missing.
    """
    writer = WRITERS.get(output.suffix.lower())
    if writer is None:
        endings = ", ".join(WRITERS)
        raise CommandFailed(f"{output}: expected a name that ends in one of {endings}")
    return writer


def write_csv(path: Path, result: Result) -> None:
    """Write CSV: the shortest decimals that read back as the same numbers, true and false.

    Names that a spreadsheet would take for formulas have an apostrophe before them.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        for number, columns in enumerate(result.tables()):
            if number == 0:
                lines.writerow(columns)
            lines.writerows(zip(*map(_as_text, columns.values()), strict=True))


def write_parquet(path: Path, result: Result) -> None:
    """Write a table of typed columns; its metadata name the calibration."""
    import pyarrow as pa
    import pyarrow.parquet as pa_parquet

    manifest = result.parts.manifest
    metadata = {
        "howsure.calibration": manifest.calibration,
        "howsure.calibration_id": manifest.calibration_id,
        "howsure.input_sha256": manifest.input_sha256,
    }
    tables = map(pa.table, result.tables())
    first = next(tables)
    schema = first.schema.with_metadata(metadata)
    with pa_parquet.ParquetWriter(path, schema) as writer:
        writer.write_table(first.cast(schema))
        for table in tables:
            writer.write_table(table.cast(schema))


def write_npz(path: Path, result: Result) -> None:
    """Write arrays as the service names and shapes them, one after the other."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name in result.names:
            first = next(result.array(name))
            dtype = first.dtype
            if dtype.kind == "U":
                # As wide as the widest text of all parts.
                dtype = np.result_type(*{array.dtype for array in result.array(name)})
            header = {
                "descr": np.lib.format.dtype_to_descr(dtype),
                "fortran_order": False,
                "shape": (result.n_rows, *first.shape[1:]),
            }
            # No date, so that the same arrays are the same bytes.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, header)
                for array in result.array(name):
                    member.write(np.ascontiguousarray(array, dtype).tobytes())


def _as_text(column: Column) -> Iterable[str]:
    if column.dtype == np.bool_:
        column = WORDS[column.astype(np.intp)]
    found: list[str] = column.astype(np.str_).tolist()
    return map(csv_cell, found) if column.dtype.kind == "U" else found


WRITERS: Mapping[str, Writer] = {
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".npz": write_npz,
}
