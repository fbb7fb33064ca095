"""Thresholds between ranked samples, and out-of-distribution thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import judged_uncertainties, uncertainties

from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.bins.edges import UNDERFLOW, quantile_edges
from howsure.statistics.ranking import ood_thresholds, ranking_of


@given(judged_uncertainties())
def test_thresholds_count_what_lies_at_or_below(sample):
    uncertainty, hits = sample
    ranked = ranking_of(uncertainty, hits)
    # What a device may flush to zero is one value.
    uncertainty = np.where(np.abs(uncertainty) < UNDERFLOW, UNDERFLOW, uncertainty)

    for place, threshold in enumerate(ranked.thresholds):
        below = uncertainty <= threshold
        assert ranked.accepted[place] == below.sum()
        assert ranked.errors[place] == (below & ~hits).sum()
    assert len(ranked.thresholds) == len(np.unique(uncertainty))
    assert np.isin(quantile_edges(sample[0], 5)[1:-1], ranked.thresholds).all()
    assert ranked.thresholds[-1] == uncertainty.max()


def test_rank_inside_a_block_means_the_whole_block():
    ranked = ranking_of(np.float32([1, 2, 2, 2, 3]), np.array([True, False, True, True, True]))

    assert ranked.thresholds.tolist() == [1.5, 2.5, 3.0]
    assert ranked.index_of_rank(np.array([1, 2, 3, 4, 5])).tolist() == [0, 1, 1, 1, 2]
    assert ranked.coverage.tolist() == [0.2, 0.8, 1.0]
    assert ranked.risk.tolist() == [0.0, 0.25, 0.2]


@given(uncertainties(), st.floats(0.01, 0.999))
def test_at_least_the_level_lies_below_and_no_smaller_value_would_do(uncertainty, level):
    threshold = ood_thresholds(ranking_of(uncertainty), (level,))[level]
    values = np.where(np.abs(uncertainty) < UNDERFLOW, UNDERFLOW, uncertainty)

    below = values <= np.float32(threshold)
    assert below.mean() >= level - 1e-9
    last_block = values == values[below].max()
    assert (below & ~last_block).mean() < level


@pytest.mark.parametrize("weight", [None, 0.1, 0.3, 1.0 / 3.0, 7.0])
@pytest.mark.parametrize("n_samples", [10, 100])
def test_shares_that_float64_rounds_take_no_further_sample(n_samples, weight):
    """.1 + .2 is more than .3; and sums of equal weights are no products."""
    design = SampleDesign(None if weight is None else np.full(n_samples, weight))
    ranked = ranking_of(np.arange(n_samples, dtype=np.float32), design=design)
    places = np.arange(1, n_samples)
    for shares in (places / n_samples, np.cumsum(np.full(n_samples, 1 / n_samples))[:-1]):
        found = ranked.thresholds_of_coverage(shares)
        assert found.tolist() == (places - 0.5).tolist()


@given(judged_uncertainties(), st.integers(0, 99))
def test_whole_weights_are_repeated_samples(sample, seed):
    uncertainty, hits = sample
    weights = np.random.default_rng(seed).integers(1, 5, len(hits))
    weighted = ranking_of(uncertainty, hits, SampleDesign(weights * 0.3))
    repeated = ranking_of(np.repeat(uncertainty, weights), np.repeat(hits, weights))
    assert ood_thresholds(weighted) == ood_thresholds(repeated)
    np.testing.assert_allclose(weighted.coverage, repeated.coverage)
    np.testing.assert_allclose(weighted.risk, repeated.risk, atol=1e-12)
