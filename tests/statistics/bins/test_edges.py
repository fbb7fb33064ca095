"""Quantile edges, and the bin of each value."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import uncertainties

from howsure.statistics.bins.edges import assign_bins, midpoints, quantile_edges


@given(uncertainties(), st.integers(1, 70))
def test_edges_lie_between_the_samples_they_part(values, n_bins):
    edges = quantile_edges(values, n_bins)
    assert (edges.dtype, edges[0], edges[-1]) == (np.float32, -np.inf, np.inf)
    for edge in edges[1:-1]:
        below, above = values[values <= edge].max(), values[values > edge].min()
        between = np.nextafter(below, np.float32(np.inf)) < above
        assert edge > below or not between


@given(uncertainties(), st.integers(1, 70))
def test_no_bin_could_be_split_where_an_edge_was_asked_for(values, n_bins):
    """Each i/B quantile is an edge, or lies in a block of ties that ends at one."""
    ordered = np.sort(values)
    bins = assign_bins(ordered, quantile_edges(values, n_bins))
    for i in range(1, n_bins):
        rank = i * len(ordered) // n_bins
        if rank > 0 and bins[rank - 1] == bins[rank]:
            tied = ordered[rank - 1 : rank + 1]
            assert tied[0] == tied[1] or np.abs(tied).max() <= np.float32(1e-37)
            last = np.flatnonzero(bins == bins[rank])[-1]
            assert ordered[last] == tied[1] or np.abs(ordered[last]) <= np.float32(1e-37)


def test_a_block_of_ties_ends_midway_to_the_next_value():
    values = np.array([0, 0, 0, 0, 0, 0, 4, 5, 6, 7], dtype=np.float32)
    assert quantile_edges(values, 2).tolist() == [-np.inf, 2.0, np.inf]
    assert quantile_edges(values, 5).tolist() == [-np.inf, 2.0, 5.5, np.inf]


def test_what_a_device_may_flush_to_zero_shares_a_bin():
    values = np.array([0.0, 1e-45, 1e-39, 9e-38, 3e-37, 1.0], dtype=np.float32)
    edges = quantile_edges(values, 6)
    assert assign_bins(values, edges).tolist() == [0, 0, 0, 0, 1, 2]
    values = np.array([-2e-37, -9e-38, 0.0, 5e-38, 3e-37], dtype=np.float32)
    assert assign_bins(values, quantile_edges(values, 5)).tolist() == [0, 1, 1, 1, 2]
    assert assign_bins(values[:2], quantile_edges(values[:2], 2)).tolist() == [0, 1]


def test_a_midpoint_lies_below_the_upper_value():
    rng = np.random.default_rng(1)
    lower = rng.exponential(size=20_000).astype(np.float32)
    neighbour = np.nextafter(lower, np.float32(np.inf))
    edges = midpoints(lower, neighbour)
    np.testing.assert_array_equal(edges, lower)
    # Half of all such midpoints do round up, so the guard is what holds them.
    mean = ((lower.astype(np.float64) + neighbour) / 2).astype(np.float32)
    assert (mean == neighbour).any()
    largest = np.finfo(np.float32).max
    lower, upper = np.array([[largest / 2], [largest]], dtype=np.float32)
    assert lower[0] < midpoints(lower, upper)[0] < upper[0], "no overflow"


@given(uncertainties(), st.integers(1, 40))
def test_bins_follow_the_definition_at_edges_and_their_neighbours(values, n_bins):
    """The one bin with ``lower < value <= upper``."""
    edges = quantile_edges(values, n_bins)
    extremes = np.finfo(np.float32)
    beside = [np.nextafter(edges[1:-1], np.float32(end)) for end in (-np.inf, np.inf)]
    ends = np.float32([0.0, -0.0, extremes.min, extremes.max])
    probes = np.concatenate([values, edges[1:-1], *beside, ends])
    is_inside = (edges[:-1] < probes[:, None]) & (probes[:, None] <= edges[1:])
    assert (is_inside.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(assign_bins(probes, edges), is_inside.argmax(axis=1))
