"""The protocol's names for types of numbers."""

from typing import Any

import numpy as np

DATATYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    **{f"UINT{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"INT{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
# Half of a float32, which numpy has no type for; it is read as float32.
BF16 = "BF16"
# The protocol has no JSON for them.
BINARY_ONLY = ("FP16", BF16)

_NAMES = {dtype: name for name, dtype in DATATYPES.items()}


def datatype_of(dtype: np.dtype[Any]) -> str:
    """Return the protocol's name of a type of numbers."""
    return _NAMES[dtype]
