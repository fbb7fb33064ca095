"""Tables of inputs or outputs as sets: what is common to opening them, whatever the format."""

from collections.abc import Mapping
from dataclasses import replace

from service.datasets.dataset import DatasetInfo
from service.datasets.limits import DatasetLimits
from service.datasets.table import ReadColumns, TableDataset, array_infos, count_samples
from service.datasets.table_columns import LABEL, TableColumns
from service.datasets.table_inputs import InputColumns
from service.datasets.table_labelling import Labelling
from service.datasets.table_labels import ClassIndexColumn
from service.datasets.table_sources import ArraySource, OutputColumns
from service.errors import InvalidDataset, TooLarge


def open_outputs(
    columns: TableColumns,
    read_columns: ReadColumns,
    *,
    dtype: str,
    file_format: str,
    location: str,
    limits: DatasetLimits,
) -> TableDataset:
    """Return a table of outputs, its rows counted and its labels checked."""
    labels = None
    if columns.labelled:
        labels = ClassIndexColumn(LABEL, location, columns.n_classes, limits.max_classes)
    n_samples = count_samples(
        read_columns,
        labels,
        LABEL if columns.labelled else columns.classes[0],
        location=location,
        limits=limits,
    )
    sources: dict[str, ArraySource] = {
        columns.kind: OutputColumns(columns, dtype, location=location)
    }
    info = DatasetInfo(
        kind=columns.kind,
        format=file_format,
        arrays=array_infos(sources, n_samples),
        n_samples=n_samples,
        n_classes=columns.n_classes,
        supplied=columns.supplied,
        labelled=columns.labelled,
    )
    return TableDataset(info, sources, labels, read_columns, location=location)


def open_inputs(
    columns: InputColumns,
    sources: Mapping[str, ArraySource],
    labelling: Labelling | None,
    read_columns: ReadColumns,
    *,
    n_samples: int,
    file_format: str,
    location: str,
    limits: DatasetLimits,
) -> TableDataset:
    """Return a table of inputs, whose rows have been counted and its labels checked."""
    info = DatasetInfo(
        kind="inputs",
        format=file_format,
        arrays=array_infos(sources, n_samples),
        n_samples=n_samples,
        n_classes=None,
        supplied=columns.supplied,
        labelled=labelling is not None,
        notes=columns.notes,
    )
    if labelling is not None:
        info = replace(
            info,
            class_map=labelling.class_map,
            is_numbered_by_name=labelling.is_numbered_by_name,
            notes=(*columns.notes, *labelling.notes),
        )
    _check_sizes(info, location=location, limits=limits)
    labels = None if labelling is None else labelling.column
    return TableDataset(info, sources, labels, read_columns, location=location)


def _check_sizes(info: DatasetInfo, *, location: str, limits: DatasetLimits) -> None:
    for name, array in info.arrays.items():
        if 0 in array.shape:
            raise InvalidDataset.at(
                f"{location}.{name}", f"expected values in each row, got shape {array.shape}"
            )
    if info.row_bytes > limits.max_row_bytes:
        raise TooLarge.at(
            location,
            f"expected at most {limits.max_row_bytes} bytes per sample, got {info.row_bytes}",
        )
    n_bytes = info.row_bytes * info.n_samples
    if n_bytes > limits.max_inflated_bytes:
        raise TooLarge.at(
            location, f"expected at most {limits.max_inflated_bytes} bytes of arrays, got {n_bytes}"
        )
