import numpy as np
import pytest
from core_strategies import uncertainties
from hypothesis import given
from hypothesis import strategies as st

from howsure.statistics.bins.edges import UNDERFLOW
from howsure.statistics.ranking import ood_thresholds, ranking_of


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
