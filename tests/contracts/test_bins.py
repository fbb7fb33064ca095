"""Laws that every way of binning keeps."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sample_strategies import judged_uncertainties, uncertainties

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.intervals import INTERVALS, IntervalOptions

PAIRS = [(lookup, flag) for lookup in ("step", "smooth") for flag in (False, True)]
WAYS = pytest.mark.parametrize(("lookup", "monotone"), [*PAIRS, ("interpolated", True)])


@WAYS
@given(data=judged_uncertainties(), n_bins=st.integers(1, 40))
def test_edges_ascend_and_counts_add_up(lookup, monotone, data, n_bins):
    uncertainty, hits = data
    table = fit_bin_table(uncertainty, hits, n_bins=n_bins, lookup=lookup, monotone=monotone)
    assert (np.diff(table.edges[1:-1]) > 0).all()
    assert len(table.edges) == table.n_bins + 1 <= n_bins + 1
    assert table.counts.sum() == table.n_samples == len(uncertainty)
    assert (table.counts > 0).all()
    assert ((table.hits >= 0) & (table.hits <= table.counts)).all()
    assert table.weights.sum() == pytest.approx(1)
    counts = np.bincount(table.look_up(uncertainty).bin, minlength=table.n_bins)
    np.testing.assert_array_equal(counts, table.counts)


METHODS = st.sampled_from(sorted(INTERVALS))
INTERVAL_OPTIONS = st.builds(IntervalOptions, METHODS, st.just(0.9), simultaneous=st.booleans())


# A bound of 3e-28 at the last knot, which rounds to one below 0.
ALL_BUT_ONE = np.float32([-8] * 8 + [1]), np.arange(9) < 8


@WAYS
@given(judged_uncertainties(), uncertainties(), st.integers(1, 40), INTERVAL_OPTIONS)
@example(ALL_BUT_ONE, ALL_BUT_ONE[0], 1, IntervalOptions())
def test_the_interval_holds_the_probability_in_any_batch(
    lookup, monotone, data, others, n_bins, interval
):
    options = {"lookup": lookup, "monotone": monotone, "interval": interval}
    found = (table := fit_bin_table(*data, n_bins=n_bins, **options)).look_up(others)
    assert ((found.lower >= 0.0) & (found.upper <= 1.0)).all()
    assert ((found.probability > 0.0) & (found.probability < 1.0)).all()
    assert ((found.lower <= found.probability) & (found.probability <= found.upper)).all()
    if monotone:
        falling = found.probability[np.argsort(others, kind="stable")]
        assert (np.diff(falling) <= 1e-12).all()
    for place in range(len(others)):
        alone = table.look_up(others[place : place + 1])
        for name in ("bin", "probability", "lower", "upper"):
            assert getattr(alone, name)[0] == getattr(found, name)[place]
