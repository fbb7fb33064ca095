"""The distance between two sets against scipy's Kolmogorov-Smirnov test."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import uncertainties
from scipy.stats import ks_2samp, mannwhitneyu

from howsure.statistics.bins.design import SampleDesign
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


@given(st.integers(0, 2**32 - 1))
def test_whole_weights_are_repeated_samples(seed):
    """Distance and area are those of the repeated sets; the p-value is that of fewer samples."""
    rng = np.random.default_rng(seed)
    further, calibration = rng.integers(0, 9, (2, 40)).astype(np.float32)
    weights, known_weights = rng.integers(1, 4, (2, 40)).astype(np.float64)
    designs = {"design": SampleDesign(weights), "calibration_design": SampleDesign(known_weights)}
    found = population_shift(further, calibration, **designs)
    pairs = ((further, weights), (calibration, known_weights))
    repeated = [np.repeat(values, counts.astype(int)) for values, counts in pairs]
    assert found.distance == pytest.approx(ks_2samp(*repeated, method="asymp").statistic)
    expected = population_shift(*repeated)
    assert found.auroc == pytest.approx(expected.auroc)
    assert found.p_value >= expected.p_value * (1 - 1e-9)


def oversampled(values, rng):
    """Values below a half are sampled five times as often as others."""
    values = values[rng.random(len(values)) < np.where(values < 0.5, 1.0, 0.2)]
    return values, SampleDesign(np.where(values < 0.5, 1.0, 5.0))


def copied(values, _):
    return np.repeat(values[:80], 5), SampleDesign(group=np.repeat(np.arange(80), 5))


@pytest.mark.parametrize("sample", [oversampled, copied])
def test_sets_of_one_population_are_alike_however_they_were_sampled(sample):
    """False alarms at 5 % are binomial with 200 tries; 22 is beyond 3.5 deviations."""
    alarms, plain = 0, 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        further, values = rng.random((2, 400)).astype(np.float32)
        values, design = sample(values, rng)
        found = population_shift(further, values, calibration_design=design)
        alarms += found.p_value < 0.05
        plain += population_shift(further, values).p_value < 0.05
    assert alarms <= 22
    assert plain > 60


@pytest.mark.parametrize(
    ("sizes", "spread"), [((20,), 0.0), ((2, 60), 0.3), ((20,), 1.0), ((2, 60), 1.0)]
)
def test_groups_count_as_much_as_their_values_differ(sizes, spread):
    """Alarms at 5 % are false in no more sets; a move is seen unless whole groups are alike."""
    rng = np.random.default_rng(4)

    def draw(move):
        groups = np.repeat(np.arange(60), rng.choice(sizes, 60))
        values = rng.normal(move, 1.0, groups.size) + rng.normal(0.0, spread, 60)[groups]
        return values.astype(np.float32), SampleDesign(group=groups)

    def p_value(move):
        (known, of_known), (further, of_further) = draw(0.0), draw(move)
        designs = {"design": of_further, "calibration_design": of_known}
        return population_shift(further, known, **designs).p_value

    assert sum(p_value(0.0) < 0.05 for _ in range(200)) <= 19
    seen = sum(p_value(0.5) < 0.01 for _ in range(50))
    assert (seen > 40) == (spread < 1.0)
