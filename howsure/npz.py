"""Archives of arrays, as `numpy.load` reads them; equal arrays give equal bytes."""

import io
import zipfile
from collections.abc import Mapping
from typing import IO

import numpy as np
from numpy.typing import ArrayLike


def write_npz(target: IO[bytes], arrays: Mapping[str, ArrayLike]) -> None:
    """Write arrays slice by slice; unlike `numpy.savez`, under any name.

    Raises
    ------
    ValueError
        If an array contains objects.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, values in arrays.items():
            array = np.asarray(values, order="C")  # equal bytes, whatever the order in memory
            if array.dtype.hasobject:
                raise ValueError(
                    f"{name}: expected a rectangular array of numbers, got one of objects"
                )
            # No date, so that equal arrays give equal bytes.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def npz_bytes(arrays: Mapping[str, ArrayLike]) -> bytes:
    """Return arrays as the bytes of an archive."""
    packed = io.BytesIO()
    write_npz(packed, arrays)
    return packed.getvalue()
