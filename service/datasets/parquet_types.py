"""What a column of a Parquet file holds, by its Arrow type."""

from typing import Any

from service.datasets.table_inputs import Holds, TableColumn

_SHOWN_CHARACTERS = 80
PICTURE_BYTES = "bytes"


def table_column(name: str, found: Any) -> TableColumn:  # noqa: ANN401 - pyarrow has no types
    """Return what a column of an Arrow type holds."""
    holds, dtype = _holds(_stored(found))
    shown = holds if holds in ("text", "dates") else str(found)[:_SHOWN_CHARACTERS]
    return TableColumn(name, holds, shown, dtype)


def picture_field(found: Any) -> Any:  # noqa: ANN401 - as above
    """Return the type of the field of a struct that has the bytes of a picture, or None."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    if not pa.types.is_struct(found):
        return None
    at = found.get_field_index(PICTURE_BYTES)
    if at < 0:
        return None
    field = found.field(at).type
    return field if pa.types.is_binary(field) or pa.types.is_large_binary(field) else None


def is_list(found: Any) -> bool:  # noqa: ANN401 - as above
    """Tell whether a type is one of lists that are read."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    types = pa.types
    return bool(
        types.is_list(found) or types.is_large_list(found) or types.is_fixed_size_list(found)
    )


def _stored(found: Any) -> Any:  # noqa: ANN401 - as above
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    while isinstance(found, pa.BaseExtensionType):
        found = found.storage_type
    return found


def _holds(found: Any) -> tuple[Holds, str]:  # noqa: ANN401 - as above
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    if picture_field(found) is not None:
        return "pictures", "uint8"
    inner, is_nested = found, is_list(found)
    while is_list(inner):
        inner = _stored(inner.value_type)
    dtype = _dtype(inner)
    if dtype is not None and is_nested:
        return "lists", "float64" if dtype == "float64" else _in_lists(dtype)
    if dtype is not None:
        return "numbers", dtype
    if pa.types.is_dictionary(inner):
        inner = inner.value_type
    if pa.types.is_string(inner) or pa.types.is_large_string(inner):
        return "text", "str"
    return ("dates" if pa.types.is_temporal(inner) else "others"), "void"


def _in_lists(dtype: str) -> str:
    """Return the dtype of an array of lists: token ids are 64 bits wide, whatever they lie in."""
    return dtype if dtype.startswith("float") else "int64"


def _dtype(found: Any) -> str | None:  # noqa: ANN401 - as above
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    if pa.types.is_boolean(found):
        return "uint8"
    if pa.types.is_integer(found) or pa.types.is_floating(found):
        return str(found) if pa.types.is_integer(found) else _FLOATS[found.bit_width]
    return None


_FLOATS = {16: "float16", 32: "float32", 64: "float64"}
