"""Distributions of two sets, and the verdict on a further set."""

from dataclasses import replace

import numpy as np
import pytest

from howsure.statistics.diagnostics.consistency import ConsistencyBand
from howsure.statistics.shift.population import PopulationShift, fit_histogram
from howsure.statistics.shift.result import MeasureEvaluation
from howsure.statistics.shift.verdict import miscalibration_p_value, shift_verdict


def test_cells_are_closed_on_the_right():
    found = fit_histogram(
        np.array([0.0, 0.05, 0.0501, 0.1, 1.0]), np.array([0.5, 0.999]), largest=1.0
    )

    assert found.edges == pytest.approx(np.linspace(0, 1, 21))
    assert np.flatnonzero(found.counts).tolist() == [0, 1, 19]
    assert found.counts[:2] == (2, 2)
    assert np.flatnonzero(found.calibration_counts).tolist() == [9, 19]


def test_values_that_rounding_put_outside_are_in_the_outer_cells():
    found = fit_histogram(np.float32([-1e-9, np.log(10) + 1e-6]), np.zeros(0), largest=np.log(10))

    assert (found.counts[0], found.counts[-1]) == (1, 1)
    assert sum(found.calibration_counts) == 0


def measure_with(population_p, *, observed=None, ece_p=None, n=1000):
    band = None
    if observed is not None:
        band = ConsistencyBand("ece", observed=observed, median=0.01, upper=0.02, resamples=1000)
    return MeasureEvaluation(
        measure="entropy",
        column="entropy",
        scores=None if observed is None else {"ece_15": 0.04},
        ece_band=band,
        ece_p_value=ece_p,
        discarded={},
        population=PopulationShift(distance=0.1, p_value=population_p, auroc=0.6),
        occupancy=(n - n // 2, n // 2),
        stated=None if observed is None else 0.9,
        right=None if observed is None else 0.86,
    )


@pytest.mark.parametrize(("p_value", "n_events", "shifted"), [
    (0.009, 1, True), (0.011, 1, False), (0.009, 2, False), (0.004, 2, True),
])  # fmt: skip
def test_events_share_the_level(p_value, n_events, shifted):
    by_population = shift_verdict(1, measure_with(p_value), n_events=n_events)
    by_calibration = shift_verdict(
        1, measure_with(1.0, observed=0.05, ece_p=p_value), n_events=n_events
    )
    assert by_population[0] == ("shifted" if shifted else "alike")
    assert by_calibration[0] == ("worse" if shifted else "alike")
    assert ("the set is shifted" in by_population[1]) == shifted
    assert ("worse than stated" in by_calibration[1]) == shifted
    assert "the set is shifted" not in by_calibration[1]


@pytest.mark.parametrize(("auroc", "says"), [
    (0.46, "answers are more certain than"), (0.48, "certainty is distributed differently than"),
    (0.52, "certainty is distributed differently than"), (0.54, "answers are less certain than"),
])  # fmt: skip
def test_a_shifted_set_says_in_which_direction(auroc, says):
    measure = measure_with(1e-6)
    measure = replace(measure, population=replace(measure.population, auroc=auroc))
    said = f"{says} on the calibration set, by entropy"
    assert said in shift_verdict(1, measure, n_events=1)[1]


@pytest.mark.parametrize(("right", "outcome"), [
    (0.0, "worse"), (0.87, "worse"), (0.89, "miscalibrated"), (0.91, "miscalibrated"),
    (0.93, "better"),
])  # fmt: skip
def test_probabilities_that_fail_are_too_high_or_too_low(right, outcome):
    """Half the error of 0.04 must be in one direction; the mean probability is 0.9."""
    measure = replace(measure_with(1.0, observed=0.05, ece_p=0.001), right=right)
    found, text = shift_verdict(1, measure, n_events=1)
    assert found == outcome
    assert "are right, 90.0 % stated" in text
    assert "no difference of certainty is seen" in text


@pytest.mark.parametrize(("observed", "p_value", "shifted"), [
    (0.03, 0.001, True), (0.03, 0.5, False), (0.015, 0.001, False),
])  # fmt: skip
def test_calibration_fails_above_the_band_and_beyond_chance(observed, p_value, shifted):
    found, text = shift_verdict(1, measure_with(1.0, observed=observed, ece_p=p_value), n_events=1)
    assert (found == "worse") == shifted
    assert ("miscalibrated" in text) == shifted
    # The error that reports state of every set, not that over the bins, which is tested.
    assert "are off by 4.0 % on average (ece_15), " in text


@pytest.mark.parametrize(("gap_p", "outcome", "says"), [
    (0.0024, "worse", "off by 4.0 % on average (ece_15), more than chance explains (p = 0.0048): "),
    (0.0026, "alike", "is probably more than chance, but not proven: p = 0.0052, and the level is"),
    (0.026, "alike", "off by 4.0 % on average (ece_15), no more than chance explains (up to 2.0 %"),
])  # fmt: skip
def test_a_share_of_hits_that_chance_does_not_explain_fails_within_the_band(gap_p, outcome, says):
    measure = replace(measure_with(1.0, observed=0.015, ece_p=0.5), gap_p_value=gap_p)
    found, text = shift_verdict(1, measure, n_events=2)
    assert found == outcome
    assert says in text


def test_the_two_tests_of_probabilities_share_a_level():
    both = [miscalibration_p_value(0.004, gap_p, consistent=False) for gap_p in (None, 0.9, 0.001)]
    assert both == [0.004, 0.008, 0.002]
    assert miscalibration_p_value(0.004, None, consistent=True) == 1.0
    assert miscalibration_p_value(0.004, 0.7, consistent=True) == 1.0


@pytest.mark.parametrize(("p_value", "says"), [
    (0.3, "off by 4.0 % on average (ece_15), which may be chance (p = 0.3)"),
    (0.05, "which may be chance (p = 0.05)"),
    (0.009, "probably more than chance, but not proven: p = 0.009, and the level is 0.005"),
])  # fmt: skip
def test_a_small_p_value_above_the_level_is_not_called_chance(p_value, says):
    found, text = shift_verdict(1, measure_with(1.0, observed=0.05, ece_p=p_value), n_events=2)
    assert found == "alike"
    assert says in text
    assert ("may be chance" in text) == (p_value >= 0.05)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize(("n", "says"), [
    (1, "none would show"), (10, "a distance of about 0.51 would show"), (42, "0.25"), (43, ""),
])  # fmt: skip
def test_a_set_too_small_to_tell_says_so(n, says, labelled):
    """The 1 % quantile of Kolmogorov's distribution over the root of n is the least that shows."""
    observed, p_value = (0.015, 1.0) if labelled else (None, None)
    measure = measure_with(0.5, observed=observed, ece_p=p_value, n=n)
    found, text = shift_verdict(1, measure, n_events=1)
    assert found == "alike"
    seen = "no shift is seen" if labelled else "no shift of its uncertainties is seen"
    assert (seen in text) == (not says)
    assert ("wrong answers that are as certain as right ones are not seen" in text) != labelled
    assert ("too few samples to tell" in text) == bool(says)
    assert says in text


def test_a_shift_of_few_samples_is_a_shift():
    assert "the set is shifted" in shift_verdict(1, measure_with(0.001, n=12), n_events=1)[1]
