"""Keys that break ties between samples without regard to their order."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import TieKeys

KEY_BYTES = 8
DIGEST_BYTES = 4


def tie_keys(rows: NDArray[np.generic], seed: int) -> TieKeys:
    """Return a keyed 32-bit hash of each row's bytes.

    The key depends on the sample and the seed alone, so neither the order nor the sharding of
    samples shows in any number derived from it. Identical samples share a key: they are
    exchangeable.

    Parameters
    ----------
    rows : ndarray of any fixed-size dtype, shape (n_samples, ...)
    seed : int
        ``0 <= seed < 2**64``.

    Returns
    -------
    ndarray of uint32, shape (n_samples,)

    Raises
    ------
    ValueError
        If ``rows`` has no axis or holds Python objects, or ``seed`` is out of range.
    """
    if rows.ndim == 0 or rows.dtype.hasobject:
        raise ValueError(f"rows must be an array of numbers, not {rows.dtype} {rows.shape}")
    if not 0 <= seed < 2 ** (8 * KEY_BYTES):
        raise ValueError(f"seed must lie in [0, 2**64), not {seed}")
    little_endian = np.ascontiguousarray(rows, dtype=rows.dtype.newbyteorder("<"))
    lines = little_endian.reshape(len(rows), -1) if rows.size else np.empty((len(rows), 0))
    root = hashlib.blake2b(digest_size=DIGEST_BYTES, key=seed.to_bytes(KEY_BYTES, "little"))
    keys = np.empty(len(rows), dtype=np.uint32)
    for index, line in enumerate(lines):
        digest = root.copy()
        digest.update(line.tobytes())
        keys[index] = int.from_bytes(digest.digest(), "little")
    return keys
