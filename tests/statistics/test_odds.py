"""The expected odds ratio over merged bins: the paper's formula, and where it is not defined."""

import numpy as np
import pytest

from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from howsure.statistics.odds import merged_odds


def table_of(counts, hits):
    rates = np.full(len(counts), 0.5)
    return BinTable(
        edges=[-np.inf, *range(1, len(counts)), np.inf],
        counts=counts, hits=hits, requested_bins=len(counts), prior=BetaPrior(0.5, 1.0),
        probability=rates, lower=rates, upper=rates, mean_uncertainty=np.arange(len(counts)),
    )  # fmt: skip


def test_bins_merge_until_each_has_a_hit_and_an_error():
    """Finlay & Oberman, section 4: ``sum_i w_i max(O(p_i) / O(a), O(a) / O(p_i))``."""
    # Bins 1 and 2 end with the first error; bin 5, without a hit, joins bins 3 and 4.
    odds = merged_odds(table_of([4, 6, 3, 5, 2], [4, 4, 3, 2, 0]))
    whole = 13 / 7
    first, rest = (8 / 2) / whole, whole / (5 / 5)
    assert odds.eor == pytest.approx(10 / 20 * first + 10 / 20 * rest, rel=1e-14)
    assert odds.n_bins == 2
    # At a probability of one half all bins weigh as much as samples: 4 + 3 + 2 of 20 are one-sided.
    assert odds.one_sided == pytest.approx(9 / 20)


def test_bins_that_need_no_merging_have_the_odds_ratio_of_the_table():
    odds = merged_odds(table_of([10, 10], [9, 3]))
    assert odds.eor == pytest.approx(9 / (12 / 8) / 2 + (12 / 8) / (3 / 7) / 2, rel=1e-14)


@pytest.mark.parametrize("hits", [[3, 4], [0, 0]], ids=["no error", "no hit"])
def test_it_is_not_defined_without_a_hit_or_an_error(hits):
    odds = merged_odds(table_of([3, 4], hits))
    assert (odds.eor, odds.lower, odds.upper, odds.n_bins) == (None, None, None, 0)
