"""The statistics on a real network: fitted on one half of the images, judged on the other.

The smaller equivalents on simulated samples are in tests/statistics.
"""

from functools import cache

import fashion_mnist
import pytest
from fashion_mnist import REQUIRES_DATA, images_and_labels, logits_of

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import EventFit
from howsure.statistics.records.records import Records
from howsure.statistics.scores import Predictions, compute_scores
from howsure.statistics.scores.binned_error import adaptive_cuts

pytestmark = REQUIRES_DATA
# Ding et al.'s tool gives these adaptive errors on the raw softmax, but for its slip in the last
# bin; scipy gives these temperatures on the logits.
MODELS = {"model": (0.00679, 0.04480, 1.0813), "model_overconfident": (0.06227, 0.20994, 1.8014)}


@cache
def records_of(half: str, model: str = "model") -> Records:
    images, labels = images_and_labels(half)
    return fashion_mnist.records_of(logits_of(model, images), labels, of=images)


def top_1(model: str, bins: int | str, lookup: str = "step") -> EventFit:
    fit = fit_calibration(
        records_of("calibration", model),
        options=FitOptions(top_k=(1,), bins=bins, lookup=lookup),
        evaluation=records_of("evaluation", model),
    )
    return fit.events[1]


@pytest.mark.parametrize("model", MODELS)
def test_errors_and_temperatures_are_those_of_other_tools(model):
    average, largest, temperature = MODELS[model]
    records = records_of("evaluation", model)
    judged = Predictions(
        uncertainty=records.uncertainty["neg_log_pmax"],
        hits=records.hits(1),
        probability=records.raw_probability(1),
        log_floor=1e-4,
    )
    scores = compute_scores(judged)
    assert scores["aece"] == pytest.approx(average, rel=0.1)
    assert scores["amce"] == pytest.approx(largest, rel=0.1)
    assert len(adaptive_cuts(judged.by_confidence)) - 1 == 10
    event = top_1(model, "auto", "interpolated")
    parameters = event.baselines["temperature"].parameters
    assert parameters["temperature"] == pytest.approx(temperature, rel=1e-3)
    best = min(baseline.evaluation["nll"] for baseline in event.baselines.values())
    assert event.measures[event.served].evaluation["nll"] <= 1.015 * best
