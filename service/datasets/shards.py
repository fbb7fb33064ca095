"""Shards: a set cut into files of some thousand samples, each of which is a small set itself."""

import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import IO

import numpy as np
from numpy.lib import format as npy_format

from service.datasets.dataset import AnyArray, Batch, DatasetInfo
from service.datasets.npz_layout import LABELS
from service.datasets.supplied import SUPPLIED_PREFIX

MOST_ROWS = 4096
AIMED_BYTES = 2**25


def shard_rows(info: DatasetInfo) -> int:
    """Return how many samples of a set go into one shard: a power of two, by their size alone.

    Models run powers of two of rows at a time: none of their runs spans two shards.
    """
    most = min(AIMED_BYTES // max(info.row_bytes, 1), MOST_ROWS)
    return 1 << (max(most, 1).bit_length() - 1)


def shard_content(batch: Batch, *, labelled: bool) -> bytes:
    """Return samples as a .npz file, not compressed, of the layout that is uploaded."""
    arrays = batch.arrays | {f"{SUPPLIED_PREFIX}{name}": v for name, v in batch.supplied.items()}
    if labelled:
        arrays[LABELS] = batch.labels
    return npz_content(arrays)


def npz_content(arrays: Mapping[str, AnyArray]) -> bytes:
    """Return arrays as a .npz file: the same bytes at any time, and whatever the names are."""
    packed = BytesIO()
    write_npz(packed, arrays)
    return packed.getvalue()


def write_npz(file: IO[bytes], arrays: Mapping[str, AnyArray]) -> None:
    """Write the same to a file, without another copy of it in memory."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # of 1980, not of now
            with archive.open(entry, "w", force_zip64=True) as member:
                rows_first = np.asarray(array, order="C")  # the only order that is read
                npy_format.write_array(member, rows_first, allow_pickle=False)
