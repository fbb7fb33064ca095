"""Tables in CSV, of outputs or of inputs: UTF-8, commas, a header line."""

import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from service.datasets.csv_inputs import CellType, open_csv_inputs
from service.datasets.limits import DatasetLimits
from service.datasets.reading import Reading
from service.datasets.table import TableDataset, require_pyarrow
from service.datasets.table_columns import LABEL, check_n_columns, reads_outputs, table_columns
from service.datasets.table_opening import open_outputs
from service.errors import InvalidDataset, TooLarge

FORMAT = "csv"

_MIN_HEADER_BYTES = 65_536
_HEADER_BYTES_PER_CLASS = 20
_MIN_BLOCK_BYTES = 256 * 1024
_BLOCK_BYTES_PER_COLUMN = 64
# Rows of pyarrow's messages count from 1 and count the header.
_FIRST_ROW = 2
_BAD_CELL = re.compile(r"In CSV column #(\d+): Row #(\d+): [^']*(?:'([^']{0,40}))?", re.DOTALL)
_BAD_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


def is_csv(head: bytes, _path: Path) -> bool:
    """Tell whether a file begins with UTF-8 text."""
    if not head or b"\0" in head:
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        # The last character may be cut in two by the end of what was read.
        return error.start >= len(head) - 3 and error.reason == "unexpected end of data"
    return True


def open_csv(
    path: Path,
    *,
    location: str,
    limits: DatasetLimits,
    labels_required: bool,
    reading: Reading,
) -> TableDataset:
    """Open a CSV file, having read its header, counted its rows and checked its labels, if any."""
    require_pyarrow(location)
    header = _read_header(path, location=location, limits=limits)
    stream = partial(_read_columns, path, header, location)
    if not reads_outputs(header, reading):
        check_n_columns(len(header), location=location, limits=limits)
        return open_csv_inputs(
            header,
            stream,
            reading,
            file_format=FORMAT,
            location=location,
            limits=limits,
            labels_required=labels_required,
        )
    columns = table_columns(
        header, location=location, limits=limits, labels_required=labels_required
    )
    return open_outputs(
        columns,
        partial(stream, {LABEL: "integers"}),
        dtype="float64",
        file_format=FORMAT,
        location=location,
        limits=limits,
    )


def _read_header(path: Path, *, location: str, limits: DatasetLimits) -> list[str]:
    most = _MIN_HEADER_BYTES + _HEADER_BYTES_PER_CLASS * limits.max_classes
    with path.open("rb") as file:
        line = file.readline(most + 1)
    if len(line) > most:
        raise TooLarge.at(
            location, f"expected a header line of at most {most} bytes, got a longer one"
        )
    try:
        (header,) = csv.reader([line.decode("utf-8-sig")], strict=True)
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise InvalidDataset.at(
            location, "expected a header line of column names, in UTF-8 and separated by commas"
        ) from error
    if len(header) == 1 and re.search(r"[;\t|]", header[0]):
        raise InvalidDataset.at(location, "expected columns separated by commas")
    return header


def _read_columns(
    path: Path,
    header: Sequence[str],
    location: str,
    types: Mapping[str, CellType],
    names: Sequence[str],
    _n_rows: int,
) -> Iterator[Any]:
    """Stream columns as record batches; how many rows each has follows from the block size.

    Cells are numbers where ``types`` does not say otherwise.
    """
    import pyarrow as pa  # noqa: PLC0415 - an optional extra
    import pyarrow.csv as pa_csv  # noqa: PLC0415 - as above

    arrow = {"integers": pa.int64(), "numbers": pa.float64(), "text": pa.string()}
    integers = {name for name, cells in types.items() if cells == "integers"}
    block = max(_MIN_BLOCK_BYTES, _BLOCK_BYTES_PER_COLUMN * len(header))
    # OSFile decompresses nothing, whatever the file is called.
    with pa.OSFile(str(path)) as file:
        with _refuse_faults(header, integers, location):
            # In one thread the messages name the row at fault.
            reader = pa_csv.open_csv(
                file,
                read_options=pa_csv.ReadOptions(use_threads=False, block_size=block),
                convert_options=pa_csv.ConvertOptions(
                    column_types={name: arrow[types.get(name, "numbers")] for name in names},
                    include_columns=list(names),
                    null_values=[""],
                ),
            )
        while True:
            # The consumer's own exceptions must not pass through here: so no yield inside.
            with _refuse_faults(header, integers, location):
                record_batch = next(reader, None)
            if record_batch is None:
                return
            yield record_batch


@contextmanager
def _refuse_faults(
    header: Sequence[str], integers: Collection[str], location: str
) -> Iterator[None]:
    """Turn what pyarrow raises into a violation that names the cell or row, where it says."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    try:
        yield
    except pa.ArrowException as error:
        text = str(error)
        if cell := _BAD_CELL.search(text):
            name, row = header[int(cell[1])], int(cell[2]) - _FIRST_ROW
            kind = "an integer" if name in integers else "a number"
            found = f", got {cell[3]!a}" if cell[3] else ""
            raise InvalidDataset.at(
                f"{location}.{name}[{row}]", f"expected {kind}{found}"
            ) from error
        if line := _BAD_ROW.search(text):
            raise InvalidDataset.at(
                f"{location}[{int(line[1]) - _FIRST_ROW}]",
                f"expected {line[2]} values, got {line[3]}",
            ) from error
        raise InvalidDataset.at(
            location, "expected rows of UTF-8 text with a value for each column, on one line each"
        ) from error
