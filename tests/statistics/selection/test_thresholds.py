"""Thresholds between ranked samples, and out-of-distribution thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import judged_uncertainties, uncertainties

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
    assert ranked.thresholds[-1] == uncertainty.max()


@given(judged_uncertainties())
def test_edges_of_bins_are_thresholds(sample):
    uncertainty, hits = sample
    inner = quantile_edges(uncertainty, 5)[1:-1]

    assert np.isin(inner, ranking_of(uncertainty, hits).thresholds).all()


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


def test_threshold_is_half_way_to_the_next_value():
    uncertainty = np.arange(100, dtype=np.float32)

    assert ood_thresholds(ranking_of(uncertainty)) == {0.9: 89.5, 0.95: 94.5, 0.99: 98.5}


@pytest.mark.parametrize("level", [0.1, 0.3, 0.6, 0.7, 0.9])
def test_products_that_float64_rounds_up_take_no_further_sample(level):
    threshold = ood_thresholds(ranking_of(np.arange(10, dtype=np.float32)), (level,))[level]

    assert threshold == round(10 * level) - 0.5
