import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import judged_uncertainties
from scipy.stats import binomtest

from howsure.statistics.bins.edges import UNDERFLOW
from howsure.statistics.coarse import fit_coarse_table
from howsure.statistics.ranking import ranking_of

TARGETS = st.sampled_from([(0.99, 0.95), (0.9, 0.5), (0.8,), (0.75, 0.5, 0.25)])


def brute_force(uncertainty, hits, targets):
    """Try every value as the end of each cell, the largest first."""
    start, ends = -np.inf, []

    def meets(end, target):
        cell = (uncertainty > start) & (uncertainty <= end)
        return hits[cell].sum() >= target * cell.sum() - 1e-9

    for target in targets:
        values = np.unique(uncertainty[uncertainty > start])[::-1]
        ends.append(next((end for end in values if meets(end, target)), None))
        start = start if ends[-1] is None else ends[-1]
    return ends


@given(judged_uncertainties(), TARGETS)
def test_edges_are_the_largest_that_meet_their_targets_and_cells_hold_every_sample_once(
    sample, targets
):
    uncertainty, hits = sample
    table = fit_coarse_table(ranking_of(uncertainty, hits), targets=targets)
    values = np.where(np.abs(uncertainty) < UNDERFLOW, UNDERFLOW, uncertainty)
    for edge, end in zip(table.edges, brute_force(values, hits, targets), strict=True):
        assert (edge is None) == (end is None)
        assert edge is None or ((values <= edge) == (values <= end)).all()
    assert [cell.target for cell in table.cells] == [*targets, None]
    assert sum(cell.count for cell in table.cells) == len(hits)
    assert sum(cell.hits for cell in table.cells) == hits.sum()
    assert sum(cell.weight for cell in table.cells) == pytest.approx(1.0)
    for cell, edge in zip(table.cells, (*table.edges, None), strict=True):
        assert cell.upper == edge
        if cell.count == 0:
            assert cell.probability is cell.interval is None
            continue
        assert cell.probability == cell.hits / cell.count >= (cell.target or 0.0) - 1e-9
        assert cell.interval[0] <= cell.probability <= cell.interval[1]


def of_one_value(hits, **options):
    return fit_coarse_table(ranking_of(np.ones(len(hits), dtype=np.float32), hits), **options)


def test_intervals_are_exact():
    table = of_one_value(np.arange(100) % 10 > 0, targets=(0.9,), level=0.9)
    expected = binomtest(90, 100).proportion_ci(0.9, method="exact")
    assert table.cells[0].interval == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_rate_of_exactly_a_target_that_rounds_up_meets_it():
    """In float64, .55 of 100 is 55.00000000000001."""
    assert of_one_value(np.arange(100) >= 45, targets=(0.55,)).edges == (1.0,)
