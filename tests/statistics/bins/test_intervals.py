"""Options and coverage of intervals."""

import numpy as np
import pytest
from interval_coverage import BINS, SIZES, simulate

from howsure.statistics.bins.intervals import INTERVALS, IntervalOptions, binomial_interval
from howsure.statistics.bins.prior import BetaPrior

SAMPLE = (np.array([8, 45, 0, 90]), np.array([10, 50, 7, 100]), BetaPrior(0.8))


@pytest.mark.parametrize("method", INTERVALS)
def test_simultaneous_divides_delta_by_the_number_of_bins(method):
    together = binomial_interval(*SAMPLE, IntervalOptions(method, 0.95, simultaneous=True))
    alone = binomial_interval(*SAMPLE, IntervalOptions(method, 1 - 0.05 / 4))
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_other_options_are_refused():
    for level in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="level must lie in"):
            IntervalOptions(level=level)
    with pytest.raises(ValueError, match=r"one of clopper_pearson, hoeffding.*not 'wald'"):
        IntervalOptions("wald")


RUNS = 300
LEVEL = 0.9
LEAST = LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / RUNS)


def coverage(n_samples, n_bins, *options, **others):
    interval = IntervalOptions(*options, level=LEVEL, **others)
    return simulate(n_samples=n_samples, n_bins=n_bins, interval=interval, runs=RUNS)


@pytest.mark.parametrize("n_bins", BINS)
@pytest.mark.parametrize("n_samples", SIZES)
def test_coverage(n_samples: int, n_bins: int) -> None:
    for method in ("clopper_pearson", "hoeffding"):
        found = coverage(n_samples, n_bins, method)
        assert found.mean >= LEVEL
        assert found.worst >= LEAST
    assert coverage(n_samples, n_bins, "clopper_pearson", simultaneous=True).together >= LEVEL
