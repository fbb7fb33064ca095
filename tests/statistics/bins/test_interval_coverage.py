"""Intervals hold the truth as often as they say, though bins and counts share their samples."""

import numpy as np
import pytest
from interval_coverage import BINS, SIZES, simulate

from howsure.statistics.bins.intervals import IntervalOptions

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
