"""Distributions of two sets: histograms and the test of their ranks."""

import numpy as np
import pytest

from howsure.statistics.shift.population import fit_histogram, population_shift


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


ONE = np.ones(1, dtype=np.float32)


def test_equal_values_differ_in_nothing():
    found = population_shift(np.repeat(ONE, 50), np.repeat(ONE, 70))

    assert (found.distance, found.p_value, found.auroc) == (0.0, 1.0, 0.5)


def test_sets_apart_differ_in_everything():
    found = population_shift(np.repeat(ONE * 2, 500), np.repeat(ONE, 700))

    assert (found.distance, found.auroc) == (1.0, 1.0)
    assert found.p_value < 1e-100


def test_calls_of_like_sets_are_as_rare_as_said():
    rng = np.random.default_rng(0)
    calls = [
        population_shift(*rng.random((2, 300)).astype(np.float32)).p_value < 0.05
        for _ in range(1000)
    ]
    assert 0.02 < np.mean(calls) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)


def test_what_one_device_flushes_to_zero_is_no_difference():
    tiny = np.full(500, 1e-40, dtype=np.float32)

    assert population_shift(tiny, tiny * 0).distance == 0.0
