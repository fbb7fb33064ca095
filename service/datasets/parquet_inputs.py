"""Tables of inputs in Parquet: features, lists of one length, pictures."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from service.datasets.checks import check_n_samples
from service.datasets.limits import DatasetLimits
from service.datasets.parquet_file import read_columns
from service.datasets.parquet_pages import check_pages
from service.datasets.parquet_pictures import PictureColumn
from service.datasets.parquet_types import is_list, table_column
from service.datasets.reading import Reading
from service.datasets.supplied import SUPPLIED_PREFIX
from service.datasets.table import ReadColumns, TableDataset, count_samples
from service.datasets.table_inputs import InputColumns, TableColumn, input_columns
from service.datasets.table_labelling import (
    Labelling,
    are_names,
    index_labelling,
    name_labelling,
    named_classes,
)
from service.datasets.table_opening import open_inputs
from service.datasets.table_sources import ArraySource, FeatureColumns, ListColumn
from service.errors import InvalidDataset


def open_parquet_inputs(
    path: Path,
    metadata: Any,  # noqa: ANN401 - pyarrow has no types
    schema: Any,  # noqa: ANN401 - as above
    reading: Reading,
    *,
    file_format: str,
    location: str,
    limits: DatasetLimits,
    labels_required: bool,
) -> TableDataset:
    """Open a Parquet file of inputs, having checked its pages, its labels and its first row."""
    columns = input_columns(
        [table_column(field.name, field.type) for field in schema],
        reading,
        location=location,
        labels_required=labels_required,
    )
    check_n_samples(metadata.num_rows, place=location, limits=limits)
    check_pages(path, metadata, _roots(columns), location=location)
    _check_supplied(columns.supplied, schema, location=location)
    encoded = []
    if columns.label is not None and columns.label.holds == "text":
        encoded = [columns.label.name]
    read = partial(read_columns, path, location, encoded)
    labelling = None
    n_samples = metadata.num_rows
    if columns.label is not None:
        labelling = _labelling(
            columns.label, read, schema.metadata, reading, location=location, limits=limits
        )
        n_samples = count_samples(
            read, labelling.column, columns.label.name, location=location, limits=limits
        )
    sources = {
        name: _source(chosen, read, reading, location=location)
        for name, chosen in columns.inputs.items()
    }
    return open_inputs(
        columns,
        sources,
        labelling,
        read,
        n_samples=n_samples,
        file_format=file_format,
        location=location,
        limits=limits,
    )


def _roots(columns: InputColumns) -> dict[str, bool]:
    """Return the columns that are read, true those of lists."""
    roots = {
        column.name: column.holds == "lists"
        for chosen in columns.inputs.values()
        for column in chosen
    }
    if columns.label is not None:
        roots[columns.label.name] = False
    return roots | {f"{SUPPLIED_PREFIX}{name}": False for name in columns.supplied}


def _check_supplied(supplied: Sequence[str], schema: Any, *, location: str) -> None:  # noqa: ANN401 - as above
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    for name in supplied:
        column = f"{SUPPLIED_PREFIX}{name}"
        found = schema.field(column).type
        if not pa.types.is_floating(found):
            raise InvalidDataset.at(
                f"{location}.{column}", f"expected floats, got {found}; cast the column to float32"
            )


def _labelling(
    label: TableColumn,
    read: ReadColumns,
    metadata: Mapping[bytes, bytes] | None,
    reading: Reading,
    *,
    location: str,
    limits: DatasetLimits,
) -> Labelling:
    place = f"{location}.{label.name}"
    if label.holds == "text":
        return name_labelling(label.name, read, reading, location=location, limits=limits)
    if label.holds != "numbers" or not np.issubdtype(label.dtype, np.integer):
        raise InvalidDataset.at(
            place, f"expected integers or names, got {label.found}; cast the column to int64"
        )
    names = named_classes(metadata, label.name, place=place)
    if names is None and are_names(reading):
        return name_labelling(label.name, read, reading, location=location, limits=limits)
    return index_labelling(label.name, names, reading, location=location, limits=limits)


def _source(
    chosen: Sequence[TableColumn],
    read: ReadColumns,
    reading: Reading,
    *,
    location: str,
) -> ArraySource:
    first = chosen[0]
    place = f"{location}.{first.name}"
    if first.holds == "pictures":
        if reading.preprocessing is None:
            raise InvalidDataset.at(
                place,
                "pictures are made the model's input as config.preprocessing says, which is "
                'missing; send "imagenet", "clip", "none" or an object of its own',
            )
        pictures = PictureColumn(first.name, reading.preprocessing, location=location)
        pictures.measure(_first_row(read, pictures.columns, location=location))
        return pictures
    if first.holds == "lists":
        values = _first_row(read, [first.name], location=location).column(first.name)
        shape = _shape(values, place=place)
        return ListColumn(first.name, first.dtype, shape, location=location)
    dtype = np.result_type(*(np.dtype(column.dtype) for column in chosen)).name
    return FeatureColumns([column.name for column in chosen], dtype, location=location)


def _first_row(read: ReadColumns, names: Sequence[str], *, location: str) -> Any:  # noqa: ANN401 - as above
    for record_batch in read(names, 1):
        if record_batch.num_rows:
            return record_batch
    raise InvalidDataset.at(
        location, "expected as many rows as the footer of the file has; send the file again"
    )


def _shape(values: Any, *, place: str) -> tuple[int, ...]:  # noqa: ANN401 - as above
    """Return the lengths of the lists in the first row, one an axis."""
    shape: list[int] = []
    while is_list(values.type):
        if not len(values) or values.null_count:
            raise InvalidDataset.at(f"{place}[0]", "expected a list of numbers, got an empty cell")
        shape.append(len(values[0]))
        values = values.flatten()
    if 0 in shape or not len(values):
        raise InvalidDataset.at(f"{place}[0]", "expected a list of numbers, got an empty one")
    return tuple(shape)
