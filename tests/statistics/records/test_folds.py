import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from howsure.statistics.records.order import stratified_folds

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


@given(hits_arrays, st.data())
def test_the_order_of_samples_does_not_matter(hits, data):
    keys = distinct_keys(len(hits))
    order = np.array(data.draw(st.permutations(range(len(hits)))))
    shuffled = stratified_folds(hits[order], keys[order], n_folds=4)
    np.testing.assert_array_equal(shuffled, stratified_folds(hits, keys, n_folds=4)[order])


def test_other_keys_deal_other_folds():
    hits = np.arange(100) % 3 > 0
    first = stratified_folds(hits, distinct_keys(100, seed=0), n_folds=5)
    second = stratified_folds(hits, distinct_keys(100, seed=1), n_folds=5)
    assert (first != second).any()


def test_no_samples_have_no_fold():
    folds = stratified_folds(np.empty(0, np.bool_), np.empty(0, np.uint32), n_folds=3)
    assert folds.shape == (0,)
