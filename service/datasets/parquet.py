"""Tables in Parquet, of outputs or of inputs, streamed through pyarrow."""

from functools import partial
from pathlib import Path
from typing import Any

from service.datasets.limits import DatasetLimits
from service.datasets.parquet_file import (
    MAGIC,
    check_claims,
    check_footer,
    open_file,
    read_columns,
    refuse_damage,
)
from service.datasets.parquet_inputs import open_parquet_inputs
from service.datasets.parquet_pages import check_pages
from service.datasets.reading import Reading
from service.datasets.table import TableDataset, require_pyarrow
from service.datasets.table_columns import (
    LABEL,
    TableColumns,
    check_n_columns,
    reads_outputs,
    table_columns,
)
from service.datasets.table_opening import open_outputs
from service.errors import InvalidDataset

FORMAT = "parquet"


def is_parquet(head: bytes, _path: Path) -> bool:
    """Tell whether a file begins as Parquet does."""
    return head.startswith(MAGIC)


def open_parquet(
    path: Path,
    *,
    location: str,
    limits: DatasetLimits,
    labels_required: bool,
    reading: Reading,
) -> TableDataset:
    """Open a Parquet file, having judged its footer and checked its labels, if any."""
    require_pyarrow(location)
    check_footer(path, location=location, limits=limits)
    with refuse_damage(location), open_file(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
        names = schema.names
    check_n_columns(metadata.num_columns, location=location, limits=limits)
    if not reads_outputs(names, reading):
        check_claims(metadata, location=location, limits=limits)
        return open_parquet_inputs(
            path,
            metadata,
            schema,
            reading,
            file_format=FORMAT,
            location=location,
            limits=limits,
            labels_required=labels_required,
        )
    columns = table_columns(
        names, location=location, limits=limits, labels_required=labels_required
    )
    check_claims(metadata, location=location, limits=limits)
    check_pages(path, metadata, dict.fromkeys(columns.all, False), location=location)
    return open_outputs(
        columns,
        partial(read_columns, path, location, ()),
        dtype=_check_types(schema, columns, location=location),
        file_format=FORMAT,
        location=location,
        limits=limits,
    )


def _check_types(schema: Any, columns: TableColumns, *, location: str) -> str:  # noqa: ANN401 - pyarrow has no types
    """Refuse columns that hold no numbers of the right kind; return the dtype of the outputs."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    for name in columns.all:
        found = schema.field(name).type
        if name == LABEL and not pa.types.is_integer(found):
            raise InvalidDataset.at(
                f"{location}.{name}", f"expected integers, got {found}; cast the column to int64"
            )
        if name != LABEL and not pa.types.is_floating(found):
            raise InvalidDataset.at(
                f"{location}.{name}", f"expected floats, got {found}; cast the column to float32"
            )
    classes = (schema.field(name).type for name in columns.classes)
    dtypes = {str(found.to_pandas_dtype().__name__) for found in classes}
    return dtypes.pop() if len(dtypes) == 1 else "float64"
