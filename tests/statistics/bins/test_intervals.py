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


@pytest.mark.parametrize("n_bins", BINS)
@pytest.mark.parametrize("n_samples", SIZES)
@pytest.mark.parametrize("method", ["clopper_pearson", "hoeffding"])
def test_coverage(method: str, n_samples: int, n_bins: int) -> None:
    found = simulate(
        n_samples=n_samples, n_bins=n_bins, interval=IntervalOptions(method, LEVEL), runs=RUNS
    )

    assert found.mean >= LEVEL
    assert found.worst >= LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / RUNS)


@pytest.mark.parametrize("n_bins", BINS)
@pytest.mark.parametrize("n_samples", SIZES)
def test_simultaneous_coverage(n_samples: int, n_bins: int) -> None:
    interval = IntervalOptions("clopper_pearson", LEVEL, simultaneous=True)

    found = simulate(n_samples=n_samples, n_bins=n_bins, interval=interval, runs=RUNS)

    assert found.together >= LEVEL


def test_the_simulation_can_tell() -> None:
    """An interval that is known to be too narrow is seen to be."""
    found = simulate(n_samples=500, n_bins=50, interval=IntervalOptions("wilson", LEVEL), runs=RUNS)
    assert found.worst < LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / RUNS)
