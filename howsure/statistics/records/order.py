"""Tie keys, folds and the canonical order of samples, all independent of the input order."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import BinIndex, Hits, TieKeys
from howsure.statistics.bins.design import ALIKE, SampleDesign
from howsure.statistics.records.records import Records

KEY_BYTES = 8
DIGEST_BYTES = 4
SINGLE = 4  # bytes of a float32


def tie_keys(rows: NDArray[np.generic], seed: int) -> TieKeys:
    """Return a keyed 32-bit hash of each row's bytes.

    The key depends only on the sample and the seed, so results derived from it do not depend on the
    order or sharding of samples. Identical samples share a key; they are exchangeable. Wider
    floating-point numbers count as float32, so that a sample has the same key in a text file.

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
    if rows.dtype.kind == "f" and rows.dtype.itemsize > SINGLE:
        with np.errstate(over="ignore"):
            rows = rows.astype(np.float32)
    little_endian = np.ascontiguousarray(rows, dtype=rows.dtype.newbyteorder("<"))
    lines = little_endian.reshape(len(rows), -1) if rows.size else np.empty((len(rows), 0))
    root = hashlib.blake2b(digest_size=DIGEST_BYTES, key=seed.to_bytes(KEY_BYTES, "little"))
    keys = np.empty(len(rows), dtype=np.uint32)
    for index, line in enumerate(lines):
        digest = root.copy()
        digest.update(line.tobytes())
        keys[index] = int.from_bytes(digest.digest(), "little")
    return keys


def stratified_folds(
    hits: Hits, tie_keys: TieKeys, *, n_folds: int, design: SampleDesign = ALIKE
) -> BinIndex:
    """Assign samples to folds in the order of their tie keys, misses first and then hits.

    Folds differ by at most one in size, in hits and in misses; with fewer misses than folds, some
    folds have none. The assignment depends on the keys only, except for samples with equal keys,
    such as pairs of one score: these are scattered. Dealt in turn they would give each fold the hit
    rate of the others, and cross-validation would look better than new samples.

    Parameters
    ----------
    hits : ndarray of bool, shape (n_samples,)
    tie_keys : ndarray of uint32, shape (n_samples,)
        Keyed hashes, which are as good as random.
    n_folds : int
        At least 2.
    design : SampleDesign
        No fold holds part of a group; folds are as alike as groups allow, and there are no more of
        them than groups.

    Returns
    -------
    ndarray of int64, shape (n_samples,)
        In ``[0, min(n_folds, n_samples))``, every fold in use.
    """
    if design.group is not None:
        return _folds_of_groups(hits, tie_keys, design.groups(hits.size), n_folds)
    dealt = np.lexsort((_scattered(tie_keys, hits), hits))
    folds = np.empty(hits.size, dtype=np.int64)
    folds[dealt] = np.arange(hits.size) % min(n_folds, max(hits.size, 1))
    return folds


def _scattered(keys: TieKeys, *like: NDArray[Any]) -> TieKeys:
    """Return keys of which the repeated ones, where all of ``like`` agree, are hashed by number."""
    order = np.lexsort((keys, *like))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = np.any(
        [found[order[1:]] != found[order[:-1]] for found in (keys, *like)], axis=0
    )
    places = np.arange(len(order))
    repeats = np.empty(len(order), np.uint64)
    repeats[order] = places - np.maximum.accumulate(np.where(is_first, places, 0))
    # The finaliser of SplitMix64 (Steele, Lea & Flood 2014), of the key and the number.
    mixed = (keys.astype(np.uint64) << np.uint64(32)) + repeats
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return np.where(repeats > 0, (mixed & np.uint64(0xFFFFFFFF)).astype(np.uint32), keys)


def _folds_of_groups(hits: Hits, tie_keys: TieKeys, places: BinIndex, n_folds: int) -> BinIndex:
    """Deal whole groups to folds, the largest first.

    Each goes to the fold where it adds least to the squared shares of misses, hits and samples.
    Groups of one size are dealt in the order of their misses and smallest tie keys, not of their
    codes.
    """
    sizes = np.bincount(places)
    misses = np.bincount(places[~hits], minlength=len(sizes))
    keys = np.full(len(sizes), np.iinfo(np.uint32).max, np.uint32)
    np.minimum.at(keys, places, tie_keys)
    shares = np.stack([misses, sizes - misses, sizes], axis=1).astype(np.float64)
    shares /= np.maximum(shares.sum(axis=0), 1.0)
    fold_of_group = np.empty(len(sizes), np.int64)
    loads = np.zeros((max(min(n_folds, len(sizes)), 1), 3))
    keys = _scattered(keys, misses, sizes)
    for group in np.lexsort((keys, -misses, -sizes)).tolist():
        fold = int(np.argmin(loads @ shares[group]))
        fold_of_group[group] = fold
        loads[fold] += shares[group]
    return fold_of_group[places]


def in_canonical_order(records: Records) -> Records:
    """Sort samples by tie key, so that results do not depend on the order of the input.

    Samples with equal keys are sorted by the other values in use; samples that agree in all of them
    are exchangeable. Records already in this order are not copied.
    """
    order = _canonical_order(records)
    if np.array_equal(order, np.arange(records.n_samples)):
        return records
    return records.take(order)


@contextmanager
def moved_to_canonical_order(records: Records) -> Iterator[None]:
    """Sort the samples in place for the duration of a block, then restore their order.

    This needs memory for a copy of only one array. Records take most of the memory of a large
    fit.

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
    design = [values for values in (records.group, records.weight) if values is not None]
    return np.lexsort((*design, *others, records.label_rank, records.tie_key))


def _move(records: Records, order: NDArray[np.int64]) -> None:
    for array in records.to_arrays().values():
        array[:] = array[order]
