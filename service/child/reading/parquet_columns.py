"""What a column of a Parquet file holds, by its Arrow type; columns of pictures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.child.pictures.decode import read_picture
from service.child.reading.table_inputs import Holds, TableColumn
from service.errors import InvalidDataset
from service.runner.messages.dataset import AnyArray
from service.runner.messages.reading import SetContext

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


class PictureColumn:
    """Encoded pictures, as the library `datasets` writes them: a struct of bytes and path.

    Paths are never opened: they would be paths of this machine. Pictures are read one at a time,
    for a dictionary may hold one of any size for all rows.
    """

    dtype = "uint8"
    most_rows = 1

    def __init__(self, name: str, ctx: SetContext) -> None:
        self.columns: Sequence[str] = [f"{name}.{PICTURE_BYTES}"]
        self.shape: tuple[int, ...] = ()
        if ctx.reading.preprocessing is None:
            raise ctx.invalid(
                "pictures are made the model's input as config.preprocessing says, which is "
                'missing; send "imagenet", "clip", "none" or an object of its own',
                name,
            )
        self._name = name
        self._preprocessing = ctx.reading.preprocessing
        self._ctx = ctx

    def measure(self, record_batch: Any) -> None:  # noqa: ANN401 - as above
        """Take the size of the first picture as that of all."""
        self.shape = self._decoded(record_batch, 0, 0).shape

    def read(self, record_batch: Any, start: int, target: AnyArray) -> None:  # noqa: ANN401 - as above
        """Write pixels of shape (rows, height, width, channels)."""
        for row, pixels in enumerate(target):
            found = self._decoded(record_batch, row, start)
            if found.shape != pixels.shape:
                raise self._ctx.invalid(
                    f"expected a picture of {_size(self.shape)} as in the rows before, got "
                    f"{_size(found.shape)}; make them one size by config.preprocessing, with a "
                    "resize to height and width or with a crop",
                    self._name,
                    start + row,
                )
            pixels[:] = found

    def _decoded(self, record_batch: Any, row: int, start: int) -> NDArray[np.uint8]:  # noqa: ANN401 - as above
        found = record_batch.column(self._name)[row].as_py()
        content = None if found is None else found[PICTURE_BYTES]
        if content is None:
            raise self._ctx.invalid(
                "expected the bytes of a picture, got none; paths are never opened: embed the "
                "pictures in the file, as push_to_hub of `datasets` does",
                self._name,
                start + row,
            )
        place = self._ctx.place(self._name, start + row)
        return read_picture(content, self._preprocessing, place=place, invalid=InvalidDataset)


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} x {shape[1]} pixels"
