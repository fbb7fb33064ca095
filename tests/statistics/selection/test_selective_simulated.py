"""Selective prediction on simulated samples whose true risk is known at every threshold.

U is uniform on [0, 1] and an answer is wrong with probability ``a + b U^3``, so that the risk of
what is accepted up to t is ``a + b t^3 / 4``.
"""

import numpy as np
import pytest

from howsure.statistics.ranking import ranking_of
from howsure.statistics.selective import SelectiveTarget, fit_selective

RUNS = 2000
DELTA = 0.05
MOST_VIOLATIONS = DELTA + 3.0 * np.sqrt(DELTA * (1.0 - DELTA) / RUNS)


def draw(rng, n_samples, floor, slope, *, decimals=None):
    uncertainty = rng.random(n_samples)
    if decimals is not None:  # ties; the truth below is that of the right end of each block
        uncertainty = np.ceil(uncertainty * 10**decimals) / 10**decimals
    hits = rng.random(n_samples) >= floor + slope * uncertainty**3
    return uncertainty.astype(np.float32), hits


@pytest.mark.parametrize(
    ("n_samples", "floor", "slope", "max_risk"),
    [
        (1000, 0.0501, 0.0, 0.05),  # every threshold breaks the bound, hardly
        (600, 0.0101, 0.0, 0.01),
        (1000, 0.0, 0.32, 0.05),  # the risk crosses the bound inside
        (1000, 0.04, 0.32, 0.05),
    ],
)
def test_guarantee_is_violated_no_more_often_than_promised(n_samples, floor, slope, max_risk):
    rng = np.random.default_rng(2024)
    target = SelectiveTarget(max_risk, DELTA)
    violations = 0
    for _ in range(RUNS):
        threshold = fit_selective(ranking_of(*draw(rng, n_samples, floor, slope)), target).threshold
        if threshold is not None:
            violations += floor + slope * min(threshold, 1.0) ** 3 / 4.0 > max_risk

    assert violations / RUNS <= MOST_VIOLATIONS


def test_guarantee_holds_with_ties():
    rng = np.random.default_rng(7)
    blocks = np.arange(1, 11) / 10.0
    true_risk = np.cumsum(0.32 * blocks**3) / np.arange(1, 11)
    violations = 0
    for _ in range(RUNS):
        sample = draw(rng, 600, 0.0, 0.32, decimals=1)
        threshold = fit_selective(ranking_of(*sample), SelectiveTarget(0.05, DELTA)).threshold
        if threshold is not None:
            violations += true_risk[np.flatnonzero(blocks <= threshold + 1e-6)[-1]] > 0.05

    assert violations / RUNS <= MOST_VIOLATIONS


@pytest.mark.parametrize(
    ("max_risk", "flipped", "least_coverage"),
    [(0.05, 0.0, 0.80), (0.01, 0.0, 0.35), (0.05, 0.004, 0.76)],
)
def test_coverage_is_near_what_the_truth_allows(max_risk, flipped, least_coverage):
    """At 8 % risk overall the truth allows .855 at 5 % and .5 at 1 %; .84 with labels flipped."""
    rng = np.random.default_rng(3)
    coverage = []
    for _ in range(20):
        uncertainty, hits = draw(rng, 5000, 0.0, 0.32)
        hits &= rng.random(5000) >= flipped
        coverage.append(
            fit_selective(ranking_of(uncertainty, hits), SelectiveTarget(max_risk, DELTA)).coverage
        )

    assert np.mean(coverage) >= least_coverage
