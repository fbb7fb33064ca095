import numpy as np
import pytest

from howsure.statistics.bins.intervals import INTERVALS, IntervalOptions, binomial_interval
from howsure.statistics.bins.prior import BetaPrior

SAMPLE = (np.array([8, 45, 0, 90]), np.array([10, 50, 7, 100]), BetaPrior(0.8))


@pytest.mark.parametrize("method", INTERVALS)
def test_simultaneous_divides_delta_by_the_number_of_bins(method):
    together = binomial_interval(*SAMPLE, IntervalOptions(method, 0.95, simultaneous=True))
    alone = binomial_interval(*SAMPLE, IntervalOptions(method, 1 - 0.05 / 4))
    np.testing.assert_allclose(together, alone, rtol=1e-12)


@pytest.mark.parametrize("level", [0.0, 1.0, np.nan])
def test_a_level_outside_the_unit_interval_is_refused(level):
    with pytest.raises(ValueError, match="level must lie in"):
        IntervalOptions(level=level)


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match=r"one of clopper_pearson, hoeffding.*not 'wald'"):
        IntervalOptions("wald")
