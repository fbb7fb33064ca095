"""The statistics on a real network: fitted on one half of the images, judged on the other.

The smaller equivalents on simulated samples are in tests/statistics.
"""

from functools import cache

import fashion_mnist
import numpy as np
import pytest
from fashion_mnist import REQUIRES_DATA, images_and_labels, logits_of
from scipy.special import log_softmax

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import EventFit
from howsure.statistics.ranking import ranking_of
from howsure.statistics.records.records import Records
from howsure.statistics.scores import Predictions, compute_scores
from howsure.statistics.scores.binned_error import adaptive_cuts
from howsure.statistics.selective import SelectiveTarget, fit_selective

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


def test_the_overconfident_model_is_outside_its_band_until_it_is_mended():
    event = top_1("model_overconfident", 15)
    raw, served = event.baselines["raw_softmax"], event.measures[event.served]
    # As the data sheet says of the model. Baselines are clipped to [1/(2n), 1 - 1/(2n)].
    assert raw.evaluation["ece_15"] == pytest.approx(0.063, abs=0.0005)
    assert raw.evaluation["nll"] == pytest.approx(raw_nll(clip=1 / 10_000), abs=0.0001)
    assert raw_nll(clip=0.0) == pytest.approx(0.3298, abs=0.0001)
    assert raw.evaluation["brier"] == pytest.approx(0.0934, abs=0.0001)
    assert served.evaluation["ece"] < 0.02
    assert not raw.evaluation_ece_band.consistent
    assert not raw.ece_band.consistent
    assert event.baselines["temperature"].evaluation_ece_band.consistent
    assert served.evaluation_ece_band.consistent
    assert served.evaluation["nll"] <= 0.273
    assert served.evaluation["brier"] <= 0.0865


def raw_nll(*, clip: float) -> float:
    """The negative log-likelihood of the model's own confidence, by ONNX Runtime and scipy."""
    images, labels = images_and_labels("evaluation")
    log_p = log_softmax(logits_of("model_overconfident", images).astype(np.float64), axis=1)
    top = np.clip(np.exp(log_p.max(axis=1)), clip, 1 - max(clip, 1e-16))
    right = log_p.argmax(axis=1) == labels
    return float(-np.where(right, np.log(top), np.log1p(-top)).mean())


@pytest.mark.parametrize("measure", ["entropy", "neg_log_pmax", "margin"])
@pytest.mark.parametrize(("max_risk", "least"), [(0.05, 0.88), (0.01, 0.60)])
def test_selective_prediction_is_useful_and_holds_on_the_other_half(measure, max_risk, least):
    halves = records_of("calibration"), records_of("evaluation")
    for ours, theirs in (halves, halves[::-1]):
        ranking = ranking_of(ours.uncertainty[measure], ours.hits(1))
        chosen = fit_selective(ranking, SelectiveTarget(max_risk, 0.05))
        assert chosen.coverage >= least
        accepted = theirs.uncertainty[measure] <= np.float32(chosen.threshold)
        assert (~theirs.hits(1)[accepted]).mean() <= max_risk
