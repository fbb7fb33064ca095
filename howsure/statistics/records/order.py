"""Tie keys, folds and one order of the samples, which do not depend on the order of the input."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import BinIndex, Hits, TieKeys
from howsure.statistics.records.records import Records

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


def stratified_folds(hits: Hits, tie_keys: TieKeys, *, n_folds: int) -> BinIndex:
    """Deal samples to folds in the order of their tie keys, misses first and then hits.

    Folds differ by at most one in size, in hits and in misses; where there are fewer misses than
    folds, some folds have none. The keys alone decide, not the order of the samples: only samples
    that share a key fall back on it.

    Parameters
    ----------
    hits : ndarray of bool, shape (n_samples,)
    tie_keys : ndarray of uint32, shape (n_samples,)
        Keyed hashes, so as good as random.
    n_folds : int
        At least 2.

    Returns
    -------
    ndarray of int64, shape (n_samples,)
        In ``[0, min(n_folds, n_samples))``, every fold in use.
    """
    dealt = np.lexsort((tie_keys, hits))
    folds = np.empty(hits.size, dtype=np.int64)
    folds[dealt] = np.arange(hits.size) % min(n_folds, max(hits.size, 1))
    return folds


def in_canonical_order(records: Records) -> Records:
    """Sort samples by tie key, so that results do not depend on the order of the input.

    Samples that share a key are told apart by what else is used of them; those that agree in all
    of it are exchangeable. Records that are in this order already are not copied.
    """
    order = _canonical_order(records)
    if np.array_equal(order, np.arange(records.n_samples)):
        return records
    return records.take(order)


@contextmanager
def moved_to_canonical_order(records: Records) -> Iterator[None]:
    """Move the samples within their arrays while the block runs, and back at its end.

    Memory is needed for a copy of one array, not of all: records are most of what a large fit
    holds.

    Raises
    ------
    ValueError
        If an array is read-only; then none is moved.
    """
    for name, array in records.to_arrays().items():
        if not array.flags.writeable:
            raise ValueError(f"{name} must not be read-only")
    order = _canonical_order(records)
    _move(records, order)
    try:
        yield
    finally:
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        _move(records, back)


def _canonical_order(records: Records) -> NDArray[np.int64]:
    families = (records.uncertainty, records.mean_log_probability, records.mean_label_rank)
    others = [family[name] for family in families for name in sorted(family)]
    return np.lexsort((*others, records.label_rank, records.tie_key))


def _move(records: Records, order: NDArray[np.int64]) -> None:
    for array in records.to_arrays().values():
        array[:] = array[order]
