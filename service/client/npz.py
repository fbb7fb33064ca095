"""Arrays as .npz archives: what is sent, and what comes back."""

import io
import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Arrays = dict[str, NDArray[Any]]


def write_npz(target: IO[bytes], arrays: Mapping[str, ArrayLike]) -> None:
    """Write arrays under any names, a slice at a time; `numpy.savez` reserves some.

    Raises
    ------
    ValueError
        If one is of objects.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, given in arrays.items():
            array = np.asarray(given)
            if array.dtype.hasobject:
                raise ValueError(
                    f"{name}: expected numbers in a rectangular array, got one of objects"
                )
            # No date, so that the same arrays are the same bytes.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def npz_bytes(arrays: Mapping[str, ArrayLike]) -> bytes:
    """Return arrays as the bytes of an archive."""
    packed = io.BytesIO()
    write_npz(packed, arrays)
    return packed.getvalue()


def read_npz(content: bytes) -> Arrays:
    """Return the arrays of an archive, in its order; nothing is unpickled."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
