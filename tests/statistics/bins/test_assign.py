import numpy as np
import pytest
from core_strategies import quick, uncertainties
from hypothesis import given
from hypothesis import strategies as st

from howsure.statistics.bins.edges import assign_bins, quantile_edges


def bin_by_definition(value, edges):
    """Find by linear search the one bin with ``lower < value <= upper``."""
    (index,) = [i for i in range(len(edges) - 1) if edges[i] < value <= edges[i + 1]]
    return index


@quick
@given(uncertainties(), st.integers(1, 40))
def test_bins_follow_the_definition_at_edges_and_their_neighbours(values, n_bins):
    edges = quantile_edges(values, n_bins)
    inner = edges[1:-1]
    probes = np.concatenate(
        [
            values,
            inner,
            np.nextafter(inner, np.float32(-np.inf)),
            np.nextafter(inner, np.float32(np.inf)),
            np.array([0.0, -0.0], dtype=np.float32),
            np.array([np.finfo(np.float32).min, np.finfo(np.float32).max]),
        ]
    ).astype(np.float32)
    expected = [bin_by_definition(value, edges) for value in probes]
    np.testing.assert_array_equal(assign_bins(probes, edges), expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_a_value_that_is_not_finite_has_no_bin(value):
    edges = np.array([-np.inf, 1.0, np.inf], dtype=np.float32)
    with pytest.raises(ValueError, match="row 1 holds"):
        assign_bins(np.array([0.5, value]), edges)
