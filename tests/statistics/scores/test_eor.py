"""The expected odds ratio."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from score_strategies import binned_counts, judged_by_table

from howsure.statistics.scores.information import eor, expected_odds_ratio

rates = st.floats(0.001, 0.999)


def ratio(probability, accuracy):
    return expected_odds_ratio(np.ones(1), np.array([probability]), accuracy)


@given(rates, rates)
def test_odds_ratio_is_least_at_the_accuracy_and_symmetric(p, a):
    assert ratio(a, a) == pytest.approx(1.0, rel=1e-12)
    assert ratio(p, a) >= 1.0 - 1e-12
    assert ratio(p, a) == pytest.approx(ratio(a, p), rel=1e-9)
    assert ratio(p, a) == pytest.approx(ratio(1.0 - p, 1.0 - a), rel=1e-9)


@given(binned_counts(), st.data())
def test_refining_bins_never_lowers_it(binned, data):
    """Finlay & Oberman, Theorem 1, on unregularised hit rates."""
    counts, hits = binned
    accuracy = hits.sum() / counts.sum()
    fine = [split_bin(data, n, k) for n, k in zip(counts.tolist(), hits.tolist(), strict=True)]
    fine_counts, fine_hits = np.array([part for parts in fine for part in parts]).T
    coarse = expected_odds_ratio(counts / counts.sum(), hits / counts, accuracy)
    refined = expected_odds_ratio(fine_counts / counts.sum(), fine_hits / fine_counts, accuracy)
    assert refined >= coarse * (1.0 - 1e-12)


def split_bin(data, count, n_hits):
    """One bin as two, each with a hit and a miss, where it has enough of both; else as one."""
    if min(n_hits, count - n_hits) < 2:
        return [(count, n_hits)]
    first_hits = data.draw(st.integers(1, n_hits - 1))
    first_misses = data.draw(st.integers(1, count - n_hits - 1))
    first = first_hits + first_misses
    return [(first, first_hits), (count - first, n_hits - first_hits)]


@given(judged_by_table())
def test_a_table_is_weighed_by_what_it_was_fitted_on(judged):
    table = judged.table
    odds = table.probability / (1.0 - table.probability)
    base = table.prior.accuracy / (1.0 - table.prior.accuracy)
    expected = sum(
        count / table.n_samples * max(o / base, base / o)
        for count, o in zip(table.counts.tolist(), odds.tolist(), strict=True)
    )
    assert eor(judged) == pytest.approx(expected, rel=1e-9)
