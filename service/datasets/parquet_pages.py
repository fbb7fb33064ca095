"""The pages of a Parquet file, walked by their headers before any is decoded.

A page says how long it is once it is inflated and how many values it holds, and pyarrow allocates
for that: a few hundred bytes can ask for gigabytes. So each is held to a limit first, and what the
footer says of a column is held against its pages.
"""

from pathlib import Path
from typing import Any, BinaryIO

from service.datasets.parquet_footer import ColumnChunk, column_chunks
from service.datasets.thrift import ThriftError, Value, read_struct
from service.errors import InvalidDataset, TooLarge

# pyarrow holds a page, or a dictionary, up to four times over.
MAX_PAGE_BYTES = 128 * 1024**2
MAX_PAGES = 2_000_000
# Values of one column in one row group: pyarrow may hold all of them where one list has them.
MAX_GROUP_VALUES = 2**25

_HEADER_BYTES = 4096
_MAX_HEADER_BYTES = 1024**2
# Field ids of parquet.thrift: PageHeader and the count in its data pages, versions 1 and 2.
_KIND, _UNCOMPRESSED, _COMPRESSED = 1, 2, 3
_COUNTED_IN = {0: 5, 3: 8}


def check_pages(path: Path, metadata: Any, roots: dict[str, bool], *, location: str) -> None:  # noqa: ANN401 - pyarrow has no types
    """Refuse pages of the columns in ``roots`` that ask for too much, or are not as claimed.

    A root is true where its values are those of lists.

    Raises
    ------
    TooLarge
        If a page, or the values of lists in one row group, are more than can be held.
    InvalidDataset
        If the pages are not what the footer says.
    """
    paths = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
    root_of = {
        at: root
        for at, name in enumerate(paths)
        for root in roots
        if name == root or name.startswith(f"{root}.")
    }
    n_pages = 0
    with path.open("rb") as file:
        for chunk in column_chunks(path, len(paths), location=location):
            if chunk.column not in root_of:
                continue
            root = root_of[chunk.column]
            place = f"{location}.{root}"
            if roots[root]:
                _check_group(chunk, place)
            at, n_values = chunk.start, 0
            while n_values < chunk.n_values:
                n_pages += 1
                if n_pages > MAX_PAGES:
                    raise TooLarge.at(location, f"expected at most {MAX_PAGES} pages, got more")
                at, found = _page(file, at, chunk, place)
                n_values += found
            if n_values != chunk.n_values:
                raise _damaged(place)


def _check_group(chunk: ColumnChunk, place: str) -> None:
    if chunk.n_values > MAX_GROUP_VALUES:
        raise TooLarge.at(
            place,
            f"expected at most {MAX_GROUP_VALUES} values in one row group, got {chunk.n_values}; "
            "write smaller ones, by row_group_size=10_000",
        )


def _page(file: BinaryIO, at: int, chunk: ColumnChunk, place: str) -> tuple[int, int]:
    """Return where the page at ``at`` ends, and how many values of the column it has."""
    n_bytes = _HEADER_BYTES
    while True:
        file.seek(at)
        data = file.read(n_bytes)
        try:
            header, length = read_struct(data)
            break
        except ThriftError as error:
            if len(data) < n_bytes or n_bytes >= _MAX_HEADER_BYTES:
                raise _damaged(place) from error
            n_bytes *= 16
    inflated, compressed = header.get(_UNCOMPRESSED), header.get(_COMPRESSED)
    end = at + length + compressed if isinstance(compressed, int) else -1
    if not isinstance(inflated, int) or inflated < 0 or not at < end <= chunk.end:
        raise _damaged(place)
    if inflated > MAX_PAGE_BYTES:
        raise TooLarge.at(
            place,
            f"expected pages of at most {MAX_PAGE_BYTES} bytes, got {inflated}; write smaller row "
            "groups, by row_group_size=100",
        )
    kind = header.get(_KIND)
    counted: Value = {}
    if isinstance(kind, int) and kind in _COUNTED_IN:
        counted = header.get(_COUNTED_IN[kind], 0)
    n_values = counted.get(1, 0) if isinstance(counted, dict) else -1
    if not isinstance(n_values, int) or n_values < 0:
        raise _damaged(place)
    return end, n_values


def _damaged(place: str) -> InvalidDataset:
    return InvalidDataset.at(
        place, "expected pages as the footer of the file has them; send the file again"
    )
