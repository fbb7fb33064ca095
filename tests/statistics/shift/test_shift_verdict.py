"""The verdict on a further set, from p-values and a band given."""

import pytest

from howsure.statistics.diagnostics.consistency import ConsistencyBand
from howsure.statistics.shift.population import PopulationShift
from howsure.statistics.shift.result import MeasureEvaluation
from howsure.statistics.shift.verdict import shift_verdict


def measure_with(population_p, *, observed=None, ece_p=None):
    band = None
    if observed is not None:
        band = ConsistencyBand("ece", observed=observed, median=0.01, upper=0.02, resamples=1000)
    return MeasureEvaluation(
        measure="entropy",
        column="entropy",
        scores=None,
        ece_band=band,
        ece_p_value=ece_p,
        discarded={},
        population=PopulationShift(distance=0.1, p_value=population_p, auroc=0.6),
        occupancy=(),
    )


@pytest.mark.parametrize(("p_value", "n_events", "shifted"), [
    (0.009, 1, True), (0.011, 1, False), (0.009, 2, False), (0.004, 2, True),
])  # fmt: skip
def test_events_share_the_level(p_value, n_events, shifted):
    by_population = shift_verdict(1, measure_with(p_value), n_events=n_events)
    by_calibration = shift_verdict(
        1, measure_with(1.0, observed=0.05, ece_p=p_value), n_events=n_events
    )
    assert (by_population[0], by_calibration[0]) == (shifted, shifted)
    for found, text in (by_population, by_calibration):
        assert ("the set is shifted" in text) == found


@pytest.mark.parametrize(("observed", "p_value", "shifted"), [
    (0.03, 0.001, True), (0.03, 0.5, False), (0.015, 0.001, False),
])  # fmt: skip
def test_calibration_fails_above_the_band_and_beyond_chance(observed, p_value, shifted):
    found, text = shift_verdict(1, measure_with(1.0, observed=observed, ece_p=p_value), n_events=1)
    assert found == shifted
    assert ("miscalibrated" in text) == shifted
