"""Distributions of two sets, and the verdict on a further set."""

from dataclasses import replace

import numpy as np
import pytest

from howsure.report.words.shifts import shift_sentence
from howsure.statistics.diagnostics.consistency import ConsistencyBand
from howsure.statistics.shift.population import PopulationShift, fit_histogram
from howsure.statistics.shift.result import MeasureEvaluation
from howsure.statistics.shift.verdict import is_too_small, miscalibration_p_value, shift_outcome


def test_cells_are_closed_on_the_right_and_the_outer_ones_hold_what_rounding_put_outside():
    values, known = np.array([0.0, 0.05, 0.0501, 0.1, 1.0]), np.array([0.5, 0.999])
    found = fit_histogram(values, known, largest=1.0)
    assert found.edges == pytest.approx(np.linspace(0, 1, 21))
    assert np.flatnonzero(found.counts).tolist() == [0, 1, 19]
    assert found.counts[:2] == (2, 2)
    assert np.flatnonzero(found.calibration_counts).tolist() == [9, 19]
    found = fit_histogram(np.float32([-1e-9, np.log(10) + 1e-6]), np.zeros(0), largest=np.log(10))
    assert (found.counts[0], found.counts[-1], sum(found.calibration_counts)) == (1, 1, 0)


def measure_with(population_p, *, observed=None, ece_p=None, n=1000, auroc=0.6, right=0.86, **more):
    """A set of n samples; labelled where a calibration error was observed."""
    found = MeasureEvaluation(
        measure="entropy", column="entropy", discarded={}, scores=None, ece_band=None,
        ece_p_value=ece_p, occupancy=(n - n // 2, n // 2), stated=None, right=None,
        population=PopulationShift(distance=0.1, p_value=population_p, auroc=auroc), **more,
    )  # fmt: skip
    if observed is None:
        return found
    band = ConsistencyBand("ece", observed=observed, median=0.01, upper=0.02, resamples=1000)
    return replace(found, scores={"ece_15": 0.04}, ece_band=band, stated=0.9, right=right)


OFF = {"observed": 0.05}  # above the band, so that the p-value decides


@pytest.mark.parametrize(("measure", "n_events", "outcome"), [
    # Events share the level of 1 %.
    (measure_with(0.009), 1, "shifted"), (measure_with(0.011), 1, "alike"),
    (measure_with(0.009), 2, "alike"), (measure_with(0.004), 2, "shifted"),
    (measure_with(1.0, ece_p=0.009, **OFF), 1, "worse"),
    (measure_with(1.0, ece_p=0.011, **OFF), 1, "alike"),
    (measure_with(1.0, ece_p=0.009, **OFF), 2, "alike"),
    (measure_with(1.0, ece_p=0.004, **OFF), 2, "worse"),
    (measure_with(0.001, ece_p=0.001, **OFF), 1, "shifted"),
    # Half the error of 0.04 must be in one direction; the mean probability is 0.9.
    *((measure_with(1.0, ece_p=0.001, right=right, **OFF), 1, outcome) for right, outcome in (
        (0.0, "worse"), (0.87, "worse"), (0.89, "miscalibrated"), (0.91, "miscalibrated"),
        (0.93, "better"))),
    # Calibration fails above the band and beyond chance.
    (measure_with(1.0, observed=0.03, ece_p=0.001), 1, "worse"),
    (measure_with(1.0, observed=0.03, ece_p=0.5), 1, "alike"),
    (measure_with(1.0, observed=0.015, ece_p=0.001), 1, "alike"),
    # A share of hits that chance does not explain fails within the band.
    *((measure_with(1.0, observed=0.015, ece_p=0.5, gap_p_value=gap_p), 2, outcome)
      for gap_p, outcome in ((0.0024, "worse"), (0.0026, "alike"), (0.026, "alike"))),
    (measure_with(0.001, n=12), 1, "shifted"),
])  # fmt: skip
def test_outcomes(measure, n_events, outcome):
    assert shift_outcome(measure, level=0.01 / n_events) == outcome


def test_sentences(golden):
    measures = {
        "shifted": measure_with(1e-6),
        **{f"auroc {auroc}": measure_with(1e-12, auroc=auroc) for auroc in (0.46, 0.48, 0.52)},
        "alike": measure_with(0.5, observed=0.015, ece_p=1.0),
        "alike, unlabelled": measure_with(0.5),
        "worse": measure_with(1.0, ece_p=0.001, **OFF),
        "miscalibrated": measure_with(1.0, ece_p=0.001, right=0.89, **OFF),
        "better": measure_with(1.0, ece_p=0.001, right=0.93, **OFF),
        "shifted and worse": measure_with(1e-6, ece_p=0.001, **OFF),
        **{f"p {p}": measure_with(1.0, ece_p=p, **OFF) for p in (0.3, 0.05, 0.009)},
        "gap": measure_with(1.0, observed=0.015, ece_p=0.5, gap_p_value=0.0024),
        "probably": measure_with(1.0, observed=0.015, ece_p=0.5, gap_p_value=0.0026),
        "no band": replace(measure_with(1.0, gap_p_value=0.3, **OFF), ece_band=None),
        **{f"{n} samples": measure_with(0.5, n=n) for n in (1, 10, 42, 43)},
        "10 labelled samples": measure_with(0.5, observed=0.015, ece_p=1.0, n=10),
    }
    said = ((name, shift_outcome(m, level=0.005), m) for name, m in measures.items())
    lines = [f"{name}: {shift_sentence(1, m, outcome, 0.005)}" for name, outcome, m in said]
    golden("statistics/shift_verdicts.txt", "\n".join(lines))


def test_the_two_tests_of_probabilities_share_a_level():
    both = [miscalibration_p_value(0.004, gap_p, consistent=False) for gap_p in (None, 0.9, 0.001)]
    assert both == [0.004, 0.008, 0.002]
    assert miscalibration_p_value(0.004, None, consistent=True) == 1.0
    assert miscalibration_p_value(0.004, 0.7, consistent=True) == 1.0


def test_a_set_is_too_small_if_a_quarter_of_distance_would_not_show():
    """The 1 % quantile of Kolmogorov's distribution over the root of n is the least that shows."""
    assert [is_too_small(n, 0.01) for n in (0, 1, 42, 43)] == [False, True, True, False]
