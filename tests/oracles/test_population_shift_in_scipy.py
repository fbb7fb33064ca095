"""The distance between two sets against scipy's Kolmogorov-Smirnov test."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import uncertainties
from scipy.stats import ks_2samp, mannwhitneyu

from howsure.statistics.ranking import merge_underflow
from howsure.statistics.shift.population import population_shift


# scipy's p-value, which is not looked at here, divides by a distance of 0.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(uncertainties(), uncertainties())
def test_distance_and_area(further, calibration):
    found = population_shift(further, calibration)

    further, calibration = merge_underflow(further), merge_underflow(calibration)
    expected = ks_2samp(further, calibration, method="asymp").statistic
    assert found.distance == pytest.approx(expected, abs=1e-12)
    wins = mannwhitneyu(further, calibration).statistic
    assert found.auroc == pytest.approx(wins / (len(further) * len(calibration)), abs=1e-12)


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0.0, 1.0), st.integers(0, 2**32 - 1))
def test_p_values_that_decide_are_never_below_the_exact_ones(n_further, n_known, move, seed):
    rng = np.random.default_rng(seed)
    further = (rng.random(n_further) + move).astype(np.float32)
    calibration = rng.random(n_known).astype(np.float32)

    found = population_shift(further, calibration).p_value
    exact = ks_2samp(further, calibration, method="exact").pvalue
    assert found > 0.05 or found >= exact * (1.0 - 1e-9)


def test_large_sets_have_the_limit_s_p_value():
    rng = np.random.default_rng(1)
    further, calibration = rng.random((2, 5000)).astype(np.float32)
    further += np.float32(0.02)

    expected = ks_2samp(further, calibration, method="exact").pvalue
    assert population_shift(further, calibration).p_value == pytest.approx(expected, rel=0.1)
