"""A bins document as Parquet: the flat table with typed columns, all else as its metadata."""

import io
import json
from importlib.util import find_spec

from service.operations.bins_document import BinsDocument
from service.operations.bins_table import COLUMNS, bin_rows

NEEDS = "to write Parquet the server needs `pip install howsure[tables]`"


def writes_parquet() -> bool:
    """Tell whether the extra that writes Parquet is installed."""
    return find_spec("pyarrow") is not None


def bins_parquet(document: BinsDocument) -> bytes:
    """Return one bin a row. What all rows share stands under ``howsure.document``, without tables.

    An edge without limit is null, and edges are float32: a reader compares the very bits that
    answers are found by.
    """
    import pyarrow as pa  # noqa: PLC0415 - an optional extra
    import pyarrow.parquet as pa_parquet  # noqa: PLC0415 - an optional extra

    shared = document.model_dump(mode="json", by_alias=True, exclude={"tables"})
    metadata = {
        "howsure.schema": document.schema_,
        "howsure.content_sha256": document.content_sha256,
        "howsure.document": json.dumps(shared, ensure_ascii=False),
    }
    types = {"bool": pa.bool_(), "string": pa.string(), "int64": pa.int64()}
    types |= {"float32": pa.float32(), "float64": pa.float64()}
    schema = pa.schema(
        [pa.field(name, types[kind]) for name, kind in COLUMNS.items()], metadata=metadata
    )
    columns = zip(*bin_rows(document), strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    written = io.BytesIO()
    pa_parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), written)
    return written.getvalue()
