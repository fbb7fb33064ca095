import numpy as np
import pytest
from scipy.stats import binomtest

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.guarantee import labels_needed
from howsure.statistics.bins.intervals import INTERVALS, IntervalOptions


def fitted(n_hits, n_samples, **options):
    hits = np.arange(n_samples) * n_hits % n_samples < n_hits  # spread evenly
    return fit_bin_table(np.linspace(0.0, 1.0, n_samples, dtype=np.float32), hits, **options)


def test_a_narrow_interval_needs_nothing():
    assert labels_needed(fitted(500, 1000, n_bins=1)) == 0


def test_the_labels_asked_for_bring_the_exact_interval_within_the_width():
    table = fitted(70, 100, n_bins=1)
    needed = 100 + labels_needed(table)
    wide = binomtest(round(0.7 * 100), 100).proportion_ci()
    narrow = binomtest(round(0.7 * needed), needed).proportion_ci()
    nearly = binomtest(round(0.7 * 0.9 * needed), round(0.9 * needed)).proportion_ci()
    assert wide.high - wide.low > 0.1
    assert narrow.high - narrow.low <= 0.1 + 1e-3
    assert nearly.high - nearly.low > 0.1


@pytest.mark.parametrize("method", INTERVALS)
@pytest.mark.parametrize("simultaneous", [False, True])
def test_every_interval_can_be_asked(method, simultaneous):
    interval = IntervalOptions(method=method, simultaneous=simultaneous)
    labels = labels_needed(fitted(12, 20, n_bins=2, interval=interval))
    assert labels is not None
    assert labels > 0


def test_one_hit_of_one_sample_promises_nothing():
    assert labels_needed(fitted(1, 1, n_bins=1)) > 100


def test_a_width_out_of_reach_is_said():
    assert labels_needed(fitted(1, 2, n_bins=1), half_width=1e-4) is None
