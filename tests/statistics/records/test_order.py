"""Tie keys, folds and the canonical order of samples."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sample_strategies import simulated_records

from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.records.order import (
    in_canonical_order,
    moved_to_canonical_order,
    stratified_folds,
    tie_keys,
)

ROWS = np.random.default_rng(3).normal(size=(200, 3, 2)).astype(np.float32)


def test_a_key_is_the_keyed_hash_of_the_bytes_of_its_row_alone():
    keys = tie_keys(ROWS, 5)
    key = (5).to_bytes(8, "little")
    hashes = [hashlib.blake2b(row.tobytes(), digest_size=4, key=key).digest() for row in ROWS]
    np.testing.assert_array_equal(keys, [int.from_bytes(found, "little") for found in hashes])
    assert keys.dtype == np.uint32
    assert len(np.unique(keys)) == len(ROWS)


def test_layout_and_byte_order_do_not_show():
    np.testing.assert_array_equal(tie_keys(np.asfortranarray(ROWS), 1), tie_keys(ROWS, 1))
    np.testing.assert_array_equal(tie_keys(ROWS.astype(">f4"), 1), tie_keys(ROWS, 1))
    assert tie_keys(np.empty((0, 4)), 0).shape == (0,)
    assert len(np.unique(tie_keys(np.arange(9), 0))) == 9


@pytest.mark.parametrize(("rows", "seed", "rule"), [
    (ROWS, -1, "seed must lie"), (ROWS, 2**64, "seed must lie"), (np.array(1.0), 0, "rows must be"),
    (np.array([None, "a"], dtype=object), 0, "rows must be"),
])  # fmt: skip
def test_other_rows_and_seeds_are_refused(rows, seed, rule):
    with pytest.raises(ValueError, match=rule):
        tie_keys(rows, seed)


hits_arrays = npst.arrays(np.bool_, st.integers(1, 40))


def distinct_keys(n_samples, seed=0):
    return np.random.default_rng(seed).permutation(n_samples).astype(np.uint32)


@given(hits_arrays, st.integers(2, 12))
def test_folds_share_samples_hits_and_misses_evenly(hits, n_folds):
    folds = stratified_folds(hits, distinct_keys(len(hits)), n_folds=n_folds)
    used = min(n_folds, len(hits))
    for stratum in (np.ones_like(hits), hits, ~hits):
        sizes = np.bincount(folds[stratum], minlength=used)
        assert len(sizes) == used
        assert sizes.max() - sizes.min() <= 1
    assert np.bincount(folds, minlength=used).min() >= 1


def crowded_records(seed, n_samples):
    """Return records of which many share a tie key."""
    records = simulated_records(n_samples, seed=seed, n_classes=4, top_k=(1, 2))
    return replace(records, tie_key=records.tie_key % np.uint32(5))


def copied(records):
    return {name: array.copy() for name, array in records.to_arrays().items()}


@given(seed=st.integers(0, 2**32 - 1), n_samples=st.integers(1, 40))
def test_samples_move_to_canonical_order_and_back(seed, n_samples):
    records = crowded_records(seed, n_samples)
    before, ordered = copied(records), copied(in_canonical_order(records))
    with moved_to_canonical_order(records):
        np.testing.assert_equal(records.to_arrays(), ordered)
        assert in_canonical_order(records) is records
    np.testing.assert_equal(records.to_arrays(), before)


def test_nothing_moves_where_one_array_is_read_only():
    records = crowded_records(1, 20)
    before = copied(records)
    *_, last = records.to_arrays().values()
    last.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"), moved_to_canonical_order(records):
        raise AssertionError
    np.testing.assert_equal(records.to_arrays(), before)


@pytest.mark.parametrize("grouped", [False, True])
def test_equal_samples_are_in_folds_by_chance(grouped):
    """Pairs of nine scores: their hits in a fold vary as those of samples drawn at random."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = rng.integers(0, 9, 1200).astype(np.float32)
        hits = rng.random(1200) < 0.3 + 0.07 * scores
        keys = tie_keys(scores, seed)
        groups = np.arange(1200) if grouped else None
        folds = stratified_folds(hits, keys, n_folds=10, design=SampleDesign(group=groups))
        assert np.ptp(np.bincount(folds[hits])) <= 1
        for score in np.unique(scores):
            of_score = scores == score
            rate, n = hits[of_score].mean(), np.bincount(folds[of_score], minlength=10)
            counted = np.bincount(folds[of_score & hits], minlength=10)
            ratios.append(np.mean((counted - n * rate) ** 2) / np.mean(n * rate * (1 - rate)))
    assert 0.8 < np.mean(ratios) < 1.2
