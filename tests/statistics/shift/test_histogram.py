import numpy as np
import pytest

from howsure.statistics.shift.population import fit_histogram


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
