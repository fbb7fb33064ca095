"""Calibration error over the table's bins and over equal ranges."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from score_strategies import judged_by_table, judged_without_bins

from howsure.statistics.scores import SCORES, Predictions
from howsure.statistics.scores.binned_error import (
    ece,
    equal_range_bins,
    equal_range_ece,
    equal_range_mce,
)


def gaps(judged, groups):
    """Count and absolute gap of each group, sample by sample."""
    found = {}
    for group, hit, probability in zip(groups, judged.hits, judged.probability, strict=True):
        count, total = found.get(group, (0, 0.0))
        found[group] = (count + 1, total + float(hit) - probability)
    return [(count, abs(total) / count) for count, total in found.values()]


@given(judged_by_table())
def test_ece_and_mce_by_hand(judged):
    by_bin = gaps(judged, judged.bins.tolist())
    expected = sum(count * gap for count, gap in by_bin) / judged.n_samples
    assert SCORES["ece"].compute(judged) == pytest.approx(expected, abs=1e-12)
    assert SCORES["mce"].compute(judged) == pytest.approx(max(g for _, g in by_bin), abs=1e-12)


@given(judged_without_bins(), st.integers(1, 20))
def test_equal_range_by_hand(judged, n_bins):
    edges = [i / n_bins for i in range(1, n_bins)]
    groups = [sum(edge < p for edge in edges) for p in judged.probability.tolist()]
    by_bin = gaps(judged, groups)
    expected = sum(count * gap for count, gap in by_bin) / judged.n_samples
    assert equal_range_ece(judged, n_bins) == pytest.approx(expected, abs=1e-12)
    assert equal_range_mce(judged, n_bins) == pytest.approx(max(g for _, g in by_bin), abs=1e-12)


def test_equal_ranges_are_closed_on_the_right():
    probability = np.array([0.0, 0.1, np.nextafter(0.1, 1), 0.3, 0.7, 0.95, 1.0])
    np.testing.assert_array_equal(equal_range_bins(probability, 10), [0, 0, 1, 2, 6, 9, 9])


@given(judged_by_table(), st.data())
def test_splitting_bins_never_lowers_it(judged, data):
    """Ding et al., Proposition 1: a bin's gap is at most the mean of its parts' gaps."""
    halves = data.draw(npst.arrays(np.int64, judged.n_samples, elements=st.integers(0, 1)))
    split = Predictions(
        uncertainty=judged.uncertainty,
        hits=judged.hits,
        probability=judged.probability,
        bins=2 * judged.bins + halves,
    )
    assert ece(split) >= ece(judged) - 1e-14


@given(judged_by_table())
def test_a_score_of_bins_wants_bins(judged):
    assume(judged.n_samples > 0)
    bare = Predictions(
        uncertainty=judged.uncertainty, hits=judged.hits, probability=judged.probability
    )
    with pytest.raises(ValueError, match="bins must be given"):
        ece(bare)
