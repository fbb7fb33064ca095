"""The kinds of Parquet columns, by their Arrow types; columns of pictures."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.child.pictures.decode import read_set_picture
from service.child.reading.columns import SPARK_VECTOR, ColumnKind, TableColumn
from service.child.reading.pictures.broken_pictures import refuse_pictures
from service.child.reading.pictures.picture_dataset import size_of_all
from service.child.reading.tables import ReadColumns
from service.errors import InvalidInput
from service.runner.messages.dataset import AnyArray
from service.runner.messages.reading import SetContext

_SHOWN_CHARACTERS = 80
_PICTURE_BYTES = "bytes"
# As Spark stores the type of its own vectors.
_VECTOR = "struct<type: int8, size: int32, indices: list<"


def table_column(name: str, arrow_type: Any) -> TableColumn:  # noqa: ANN401 - pyarrow has no types
    """Return the column of an Arrow type."""
    kind, dtype = _kind(_stored(arrow_type))
    type_name = kind if kind in ("text", "dates") else str(arrow_type)[:_SHOWN_CHARACTERS]
    if type_name.startswith(_VECTOR):
        type_name = SPARK_VECTOR
    return TableColumn(name, kind, type_name, dtype)


def is_list(arrow_type: Any) -> bool:  # noqa: ANN401 - as above
    """Tell whether a type is one of lists that are read."""
    from pyarrow import types  # noqa: PLC0415 - slow to import

    tests = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(test(arrow_type) for test in tests)


def read_types(arrow_type: Any) -> list[Any]:  # noqa: ANN401 - as above
    """Return the types to cast a column to, one after the other, before its values are read.

    Views of text become text. Decimals become text and then floats, the nearest ones: Arrow's own
    cast misses these by a bit in a third of the cases.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    if is_list(arrow_type):
        return [pa.list_(inner) for inner in read_types(arrow_type.value_type)]
    if pa.types.is_decimal(arrow_type):
        return [pa.string(), pa.float64()]
    return [pa.string()] if pa.types.is_string_view(arrow_type) else []


def _stored(arrow_type: Any) -> Any:  # noqa: ANN401 - as above
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    while isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    return arrow_type


def _kind(arrow_type: Any) -> tuple[ColumnKind, str]:  # noqa: ANN401 - as above
    """Return the kind of a column, and the numpy dtype of its values."""
    from pyarrow import types  # noqa: PLC0415 - slow to import

    if _is_picture(arrow_type):
        return "pictures", "uint8"
    inner, is_nested = arrow_type, is_list(arrow_type)
    while is_list(inner):
        inner = _stored(inner.value_type)
    if types.is_decimal(inner):  # as SQL and Spark write numbers
        return "lists" if is_nested else "numbers", "float64"
    if types.is_floating(inner):
        return "lists" if is_nested else "numbers", f"float{inner.bit_width}"
    if types.is_boolean(inner) or types.is_integer(inner):
        # Token ids are 64 bits wide, whatever they are stored in.
        own = "uint8" if types.is_boolean(inner) else str(inner)
        return ("lists", "int64") if is_nested else ("numbers", own)
    if types.is_dictionary(inner):
        inner = inner.value_type
    if types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner):
        return "text", "str"
    return ("dates" if types.is_temporal(inner) else "others"), "void"


def _is_picture(arrow_type: Any) -> bool:  # noqa: ANN401 - as above
    """Tell whether a type is a struct with a field for the bytes of a picture."""
    from pyarrow import types  # noqa: PLC0415 - slow to import

    if not types.is_struct(arrow_type) or arrow_type.get_field_index(_PICTURE_BYTES) < 0:
        return False
    field = arrow_type.field(_PICTURE_BYTES).type
    return bool(types.is_binary(field) or types.is_large_binary(field))


class PictureColumn:
    """Encoded pictures, as the library `datasets` writes them: a struct of bytes and path.

    Paths are never opened: they would be paths of this machine. Pictures are read one at a time,
    because a dictionary may hold one of any size for all rows.
    """

    dtype = "uint8"
    most_rows = 1

    def __init__(self, name: str, read: ReadColumns, ctx: SetContext) -> None:
        self.columns: Sequence[str] = [f"{name}.{_PICTURE_BYTES}"]
        if ctx.reading.preprocessing is None:
            raise ctx.invalid(
                "pictures need config.preprocessing, which is missing; send "
                '"imagenet", "clip", "unit", "none" or an object of its own',
                name,
            )
        self._name = name
        self._preprocessing = ctx.reading.preprocessing
        self._read = read
        self._ctx = ctx
        size = size_of_all(self._preprocessing, self._pictures())
        self.shape: tuple[int, ...] = (*size, self._preprocessing.channels)

    def read(self, record_batch: Any, start: int, target: AnyArray) -> None:  # noqa: ANN401 - as above
        """Write pixels of shape (rows, height, width, channels)."""
        for row, pixels in enumerate(target):
            found = self._picture(record_batch, row, start)
            if isinstance(found, InvalidInput):
                others = self._pictures(after=start + row)
                raise refuse_pictures(found, others, place=self._ctx.location)
            if found.shape != pixels.shape:
                raise self._ctx.invalid(
                    f"expected a picture of {_size(self.shape)} as in the rows before, got "
                    f"{_size(found.shape)}; make them one size by config.preprocessing, with a "
                    "resize to height and width or with a crop",
                    self._name,
                    start + row,
                )
            pixels[:] = found

    def _pictures(self, *, after: int = -1) -> Iterator[NDArray[np.uint8] | InvalidInput | None]:
        """Yield the pictures of all rows as `_picture` does; None up to row ``after``."""
        start = 0
        for record_batch in self._read(self.columns, self.most_rows):
            for row in range(record_batch.num_rows):
                is_known = start + row <= after
                yield None if is_known else self._picture(record_batch, row, start)
            start += record_batch.num_rows

    def _picture(
        self,
        record_batch: Any,  # noqa: ANN401 - as above
        row: int,
        start: int,
    ) -> NDArray[np.uint8] | InvalidInput:
        """Return the pixels of a picture, or why it cannot be used."""
        found = record_batch.column(self._name)[row].as_py()
        content = None if found is None else found[_PICTURE_BYTES]
        if content is None:
            return self._ctx.invalid(
                "expected the bytes of a picture, got none; paths are never opened: embed the "
                "pictures in the file, as push_to_hub of `datasets` does",
                self._name,
                start + row,
            )
        place = self._ctx.place(self._name, start + row)
        return read_set_picture(content, self._preprocessing, place=place)


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} x {shape[1]} pixels"
