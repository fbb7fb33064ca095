"""Tables of inputs in CSV: features, and labels that are indices or names."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from service.datasets.limits import DatasetLimits
from service.datasets.reading import Reading
from service.datasets.table import TableDataset, count_samples
from service.datasets.table_columns import listed, refuse_duplicates
from service.datasets.table_inputs import Holds, TableColumn, input_columns, label_column
from service.datasets.table_labelling import are_names, index_labelling, name_labelling
from service.datasets.table_opening import open_inputs
from service.datasets.table_sources import FeatureColumns
from service.errors import InvalidDataset

CellType: TypeAlias = Literal["integers", "numbers", "text"]
# Given how cells are read, column names and a number of rows, stream record batches.
ReadCells = Callable[[Mapping[str, CellType], Sequence[str], int], Iterator[Any]]

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}")


def open_csv_inputs(
    header: Sequence[str],
    read_cells: ReadCells,
    reading: Reading,
    *,
    file_format: str,
    location: str,
    limits: DatasetLimits,
    labels_required: bool,
) -> TableDataset:
    """Open a CSV file of features, having counted its rows and checked its labels, if any.

    What a column holds is told from the first row; every other cell is held to that.
    """
    refuse_duplicates(header, location=location)
    # Before any row is read: what is no table at all has no such column.
    label_column(header, reading, location=location, required=labels_required)
    cells = _first_row(header, read_cells, location=location)
    columns = input_columns(
        [_table_column(name, cells[name]) for name in header],
        reading,
        location=location,
        labels_required=labels_required,
    )
    sources = {
        name: FeatureColumns([column.name for column in chosen], "float64", location=location)
        for name, chosen in columns.inputs.items()
    }
    read, labelling = partial(read_cells, {}), None
    counted = next(iter(sources.values())).columns[0]
    if columns.label is not None:
        counted = columns.label.name
        if are_names(reading) or (cells[counted].strip() and not _is_number(cells[counted])):
            read = partial(read_cells, {counted: "text"})
            labelling = name_labelling(counted, read, reading, location=location, limits=limits)
        else:
            read = partial(read_cells, {counted: "integers"})
            labelling = index_labelling(counted, None, reading, location=location, limits=limits)
    labels = None if labelling is None else labelling.column
    return open_inputs(
        columns,
        sources,
        labelling,
        read,
        n_samples=count_samples(read, labels, counted, location=location, limits=limits),
        file_format=file_format,
        location=location,
        limits=limits,
    )


def _first_row(header: Sequence[str], read_cells: ReadCells, *, location: str) -> dict[str, str]:
    types: dict[str, CellType] = dict.fromkeys(header, "text")
    for record_batch in read_cells(types, header, 1):
        if record_batch.num_rows:
            try:
                return {name: record_batch.column(name)[0].as_py() or "" for name in header}
            except UnicodeDecodeError as error:
                raise InvalidDataset.at(f"{location}[0]", "expected text in UTF-8") from error
    raise InvalidDataset.at(
        location, f"expected at least one sample, got none below {listed(header)}"
    )


def _table_column(name: str, cell: str) -> TableColumn:
    holds: Holds = "numbers"
    if cell.strip() and not _is_number(cell):
        holds = "dates" if _DATE.fullmatch(cell.strip()) else "text"
    return TableColumn(name, holds, holds)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
