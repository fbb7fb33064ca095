"""Parquet whose pages claim what is not so: their headers patched, byte for byte."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet


def one_page(path: Path, name: str, values: np.ndarray) -> int:
    """Write one plain page of int64 beside labels; return where its header is."""
    table = pa.table({name: values, "label": np.arange(len(values)) % 2})
    pa_parquet.write_table(table, path, compression="none", use_dictionary=False)
    offset: int = pa_parquet.read_metadata(path).row_group(0).column(0).data_page_offset
    return offset


def varint(value: int, width: int) -> bytes:
    """Return a number as Thrift's compact protocol has it, in as many bytes as are asked for."""
    zigzag = 2 * value
    parts = [(zigzag >> 7 * k) & 0x7F | (0x80 if k < width - 1 else 0) for k in range(width)]
    assert zigzag >> 7 * width == 0
    return bytes(parts)


def claiming(path: Path, at: int, old: int, new: int, width: int, *, occurrence: int = 0) -> Path:
    """Replace a number in the header at ``at`` by another that takes as many bytes."""
    data = bytearray(path.read_bytes())
    found = at
    for _ in range(occurrence + 1):
        found = data.index(varint(old, width), found + 1)
    assert found - at < 30, "not in the header"
    data[found : found + width] = varint(new, width)
    path.write_bytes(data)
    return path
