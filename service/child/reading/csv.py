"""Tables in CSV, of outputs or of inputs: UTF-8, commas, a header line."""

import csv
import re
from codecs import getincrementaldecoder
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from howsure.statistics.input_ranges import MOST_COLUMNS
from service.child.reading.class_indices import ClassLabels, none_of_these
from service.child.reading.columns import (
    CORRECT_COLUMN,
    DECIMAL_COMMA,
    NAME_CLASSES,
    THOUSANDS,
    TableColumn,
    TableColumns,
    check_n_columns,
    is_number,
    label_column,
    labels_are_names,
    listed,
    refuse_duplicates,
)
from service.child.reading.pairs import PREDICTED, PairSet, read_pairs, reads_pairs
from service.child.reading.sampling_design import GROUP
from service.child.reading.set_file import SetFile
from service.child.reading.table_columns import table_columns
from service.child.reading.table_labels import count_rows, read_indices, read_names
from service.child.reading.tables import (
    ArraySource,
    BinaryColumn,
    NumberColumns,
    TableSet,
    guarded,
)
from service.child.reading.unread_texts import add_texts
from service.errors import InvalidDataset, TooLarge
from service.runner.messages.reading import LABEL, SetContext

FORMAT = "csv"
BOOLEANS = "booleans"
_MIN_HEADER_BYTES = 65_536
_HEADER_BYTES_PER_CLASS = 20
_MIN_BLOCK_BYTES = 256 * 1024
_BLOCK_BYTES_PER_COLUMN = 256
# Rows of pyarrow's messages count from 1 and count the header.
_FIRST_ROW = 2
_BAD_CELL = re.compile(r"In CSV column #(\d+): Row #(\d+): [^']*(?:'([^']{0,40}))?", re.DOTALL)
_BAD_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
# How tools write a cell without a value; text stays as it is.
_EMPTY = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")
# Before decimal commas: 1,234 may be either.
_WRITTEN = {
    THOUSANDS: re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+\.[0-9]+|[+-]?[0-9]{1,3}(,[0-9]{3}){2,}"),
    DECIMAL_COMMA: re.compile(r"[+-]?[0-9.]+,[0-9]+"),
}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}")


def is_text(head: bytes) -> bool:
    """Tell whether a file begins with UTF-8 text."""
    try:
        # The last character may be cut in two by the end of what was read.
        getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return bool(head) and b"\0" not in head


def open_csv(file: SetFile, ctx: SetContext) -> TableSet | PairSet:
    """Open a CSV file, read its header, count its rows and check its labels, if any."""
    header = _read_header(file, ctx)
    check_n_columns(len(header), ctx)
    read_texts = partial(_read_columns, file, header, ctx, dict.fromkeys(header, "string"))
    if reads_pairs(header, ctx):
        refuse_duplicates(header, ctx)
        cells: dict[str, str] = dict.fromkeys((CORRECT_COLUMN, GROUP, PREDICTED, LABEL), "string")
        read_pairs_of = partial(_read_columns, file, header, ctx, cells)
        pairs = read_pairs(header, read_pairs_of, ctx, file_format=FORMAT)
        first_row = _first_row(file, header, ctx)
        add_texts(pairs, [_table_column(*cell) for cell in first_row.items()], read_texts, ctx)
        return pairs
    found = _columns(file, header, ctx)
    booleans = {column.name for column in found if column.type_name == BOOLEANS}
    columns = table_columns(found, ctx)
    texts: dict[str, str] = {GROUP: "string"} if GROUP in columns.design else {}
    read = partial(_read_columns, file, header, ctx, booleans=booleans)
    sources: dict[str, ArraySource] = {
        name: BinaryColumn(chosen[0].name, ctx)
        if columns.is_binary
        else NumberColumns(chosen, columns.kind, "float64", ctx)
        for name, chosen in columns.arrays.items()
    }
    labels: ClassLabels | int
    if columns.label is None:
        labels = count_rows(next(iter(sources.values())).columns[0], partial(read, {}), ctx)
    else:
        labels = _labels(columns.label.name, columns, read, ctx)
    dataset = TableSet(columns, sources, labels, partial(read, texts), ctx, file_format=FORMAT)
    add_texts(dataset, found, read_texts, ctx)
    return dataset


def _labels(
    name: str,
    columns: TableColumns,
    read: "partial[Iterator[Any]]",
    ctx: SetContext,
) -> ClassLabels:
    if labels_are_names(columns, ctx):
        names = partial(read, {name: "string"})
        return read_names(name, names, ctx, classes=columns.class_names)
    try:
        integers = partial(read, {name: "int64"}, integers=[name])
        return read_indices(name, integers, ctx, n_classes=columns.n_classes)
    except InvalidDataset:
        # Tools write 8.0 for the integers of a column that once had an empty cell.
        whole = partial(read, {}, integers=[name])
        return read_indices(name, whole, ctx, n_classes=columns.n_classes)


def _columns(file: SetFile, header: Sequence[str], ctx: SetContext) -> list[TableColumn]:
    """Return the columns; the first row tells their kinds."""
    refuse_duplicates(header, ctx)
    # Before any row is read: a file that is no table at all has no such column.
    label = label_column(header, ctx)
    cells = _first_row(file, header, ctx)
    if label is not None and cells[label] in none_of_these(ctx.reading):
        cells[label] = _first_class(file, header, ctx, label)
    found = [_table_column(name, cells[name]) for name in header]
    # Labels may be names of classes, such as "true" or "None".
    return [
        replace(one, kind="text")
        if one.name == label and one.kind == "numbers" and _is_name(cells[label])
        else one
        for one in found
    ]


def _is_name(cell: str) -> bool:
    return bool(cell.strip()) and not is_number(cell)


def _first_row(file: SetFile, header: Sequence[str], ctx: SetContext) -> dict[str, str]:
    types: dict[str, str] = dict.fromkeys(header, "string")
    for record_batch in _read_columns(file, header, ctx, types, header, 1):
        if record_batch.num_rows:
            return {name: record_batch.column(name)[0].as_py() or "" for name in header}
    raise ctx.invalid(f"expected at least one sample, got none below {listed(header)}")


def _first_class(file: SetFile, header: Sequence[str], ctx: SetContext, label: str) -> str:
    """Return the first label that is a class, or -1: it tells whether classes have names."""
    none = none_of_these(ctx.reading)
    batches = _read_columns(file, header, ctx, {label: "string"}, [label], 1)
    cells = (cell or "" for rows in batches for cell in rows.column(label).to_pylist())
    return next((cell for cell in cells if cell not in none), *none)


def _table_column(name: str, cell: str) -> TableColumn:
    if cell.strip() in _EMPTY or is_number(cell):
        dtype = "int64" if cell.strip().lstrip("+-").isdecimal() else "float64"
        return TableColumn(name, "numbers", "numbers", dtype)
    if cell.strip().lower() in ("true", "false"):
        return TableColumn(name, "numbers", BOOLEANS)
    kind: Literal["dates", "text"] = "dates" if _DATE.fullmatch(cell.strip()) else "text"
    written = (of for of, form in _WRITTEN.items() if form.fullmatch(cell.strip()))
    return TableColumn(name, kind, next(written, kind))


_SEPARATORS = {";": ";", "\t": "\\t", "|": "|"}


def _read_header(file: SetFile, ctx: SetContext) -> list[str]:
    most = _MIN_HEADER_BYTES + _HEADER_BYTES_PER_CLASS * ctx.limits.max_classes
    line = file.open().readline(most + 1)
    if len(line) > most:
        raise TooLarge.at(
            ctx.location,
            f"expected a header line of at most {most} bytes, got a longer one; shorten the names "
            "of columns, or send .npz",
        )
    if line.lstrip().startswith((b'{"', b"[{", b"[[")):
        raise ctx.invalid(
            "expected a table, got JSON; pandas.read_json(path).to_csv(new, index=False) converts "
            "it, of JSON lines with lines=True"
        )
    try:
        (header,) = csv.reader([line.decode("utf-8-sig")], strict=True)
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise ctx.invalid(
            "expected a header line of column names, in UTF-8 and separated by commas"
        ) from error
    if len(header) == 1 and (found := re.search(r"[;\t|]", header[0])):
        read = f'pandas.read_csv(path, sep="{_SEPARATORS[found[0]]}")'
        raise ctx.invalid(
            "expected columns separated by commas and numbers with decimal points; "
            f"{read}.to_csv(new, index=False) converts the file, of decimal commas with "
            'decimal=","'
        )
    return header


def _read_columns(
    file: SetFile,
    header: Sequence[str],
    ctx: SetContext,
    types: Mapping[str, str],
    names: Sequence[str],
    _n_rows: int,
    booleans: Collection[str] = (),
    integers: Collection[str] = (),
) -> Iterator[Any]:
    """Stream columns as record batches; how many rows each has follows from the block size.

    Cells are numbers where ``types``, names of Arrow's, does not say otherwise; ``booleans`` become
    numbers. For messages, ``integers`` are expected to be whole.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    import pyarrow.csv as pa_csv  # noqa: PLC0415 - as above

    arrow_types = {name: types.get(name, "float64") for name in names}
    cast = {name for name, found in arrow_types.items() if name in booleans and found != "string"}

    def opened() -> Iterator[Any]:
        # In one thread the messages name the row at fault.
        reader: Iterator[Any] = pa_csv.open_csv(
            pa.PythonFile(file.open(), mode="r"),
            read_options=pa_csv.ReadOptions(
                use_threads=False,
                block_size=max(_MIN_BLOCK_BYTES, _BLOCK_BYTES_PER_COLUMN * len(header)),
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=arrow_types | dict.fromkeys(cast, "bool"),
                include_columns=list(names),
                # Each column keeps a copy of these, which would fill the memory of a wide table.
                null_values=list(_EMPTY if len(names) <= MOST_COLUMNS else _EMPTY[:1]),
            ),
        )
        return reader

    for record_batch in guarded(opened, partial(_refuse_faults, header, integers, ctx)):
        yield pa.RecordBatch.from_arrays(
            [
                column.cast(arrow_types[name]) if name in cast else column
                for name, column in zip(names, record_batch.columns, strict=True)
            ],
            names=list(names),
        )


@contextmanager
def _refuse_faults(
    header: Sequence[str], integers: Collection[str], ctx: SetContext
) -> Iterator[None]:
    """Turn what pyarrow raises into a violation that names the cell or row, where it says."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    try:
        yield
    except MemoryError:  # pyarrow's own is one of its exceptions too
        raise
    except pa.ArrowException as error:
        text = str(error)
        if cell := _BAD_CELL.search(text):
            name, row = header[int(cell[1])], int(cell[2]) - _FIRST_ROW
            kind = "an integer" if name in integers else "a number"
            found = f", got {cell[3]!a}" if cell[3] else ""
            is_name = name in integers and bool(cell[3]) and not is_number(cell[3])
            fix = f"; {NAME_CLASSES}" if is_name else ""
            raise ctx.invalid(f"expected {kind}{found}{fix}", name, row) from error
        if line := _BAD_ROW.search(text):
            raise ctx.invalid(
                f"expected {line[2]} values, got {line[3]}", row=int(line[1]) - _FIRST_ROW
            ) from error
        raise ctx.invalid(
            "expected rows of UTF-8 text with a value for each column, on one line each"
        ) from error
