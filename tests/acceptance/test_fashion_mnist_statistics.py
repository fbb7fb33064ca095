"""The statistics on real networks: fitted on one half of the images, judged on the other.

The smaller equivalents on simulated samples are tests/statistics/fit/test_fit_simulated.py and
test_consistency.py.
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
MODELS = ("model", "model_overconfident")
EACH_MODEL = pytest.mark.parametrize("model", MODELS)
MODERATE_BINS = (10, 12, 15, 18, 20)


@cache
def records_of(model: str, half: str) -> Records:
    images, labels = images_and_labels(half)
    return fashion_mnist.records_of(logits_of(model, images), labels, of=images)


@cache
def top_1(model: str, bins: int | str, lookup: str = "step") -> EventFit:
    fit = fit_calibration(
        records_of(model, "calibration"),
        options=FitOptions(top_k=(1,), bins=bins, lookup=lookup),
        evaluation=records_of(model, "evaluation"),
    )
    return fit.events[1]


def served(event: EventFit):
    return event.measures[event.served]


@pytest.mark.parametrize(
    ("model", "average", "largest"),
    [("model", 0.00679, 0.04480), ("model_overconfident", 0.06227, 0.20994)],
)
def test_adaptive_errors_are_those_of_the_authors_tool(model, average, largest):
    """Ding et al.'s tool gives these on the raw softmax, but for its slip in the last bin."""
    records = records_of(model, "evaluation")
    judged = Predictions(
        uncertainty=records.uncertainty["neg_log_pmax"],
        hits=records.hits(1),
        probability=records.raw_probability(1),
        log_floor=1e-4,
    )
    found = compute_scores(judged)
    assert found["aece"] == pytest.approx(average, rel=0.1)
    assert found["amce"] == pytest.approx(largest, rel=0.1)
    assert len(adaptive_cuts(judged.by_confidence)) - 1 == 10


@EACH_MODEL
def test_interpolated_bins_are_as_good_as_any_baseline(model):
    event = top_1(model, "auto", "interpolated")
    best = min(baseline.evaluation["nll"] for baseline in event.baselines.values())
    assert served(event).evaluation["nll"] <= 1.015 * best


def test_fifteen_bins_mend_the_overconfident_model():
    found = served(top_1("model_overconfident", 15)).evaluation
    assert found["nll"] <= 0.273
    assert found["brier"] <= 0.0865


@EACH_MODEL
@pytest.mark.parametrize("measure", ["entropy", "neg_log_pmax", "margin"])
def test_brier_hardly_moves_from_10_to_100_bins(model, measure):
    scores = [top_1(model, n).measures[measure].evaluation["brier"] for n in (10, 20, 50, 100)]
    assert max(scores) < 1.03 * min(scores)


@pytest.mark.parametrize("bins", MODERATE_BINS)
def test_served_bins_are_calibrated_as_well_as_chance_allows(bins):
    found = served(top_1("model", bins))
    assert found.evaluation["ece"] < 0.010
    assert found.evaluation_ece_band.consistent
    assert found.ece_band.consistent


def test_raw_confidence_of_the_overconfident_model_is_outside_its_band():
    event = top_1("model_overconfident", 10)
    raw = event.baselines["raw_softmax"]
    assert not raw.evaluation_ece_band.consistent
    assert not raw.ece_band.consistent
    assert event.baselines["temperature"].evaluation_ece_band.consistent
    assert event.measures[event.served].evaluation_ece_band.consistent


def test_the_temperature_is_that_of_the_logits():
    """The overconfident model's, by scipy on its logits, is 1.801; the other's 1.081."""
    for model, expected in (("model", 1.0813), ("model_overconfident", 1.8014)):
        found = top_1(model, "auto").baselines["temperature"].parameters["temperature"]
        assert found == pytest.approx(expected, rel=1e-3)


@EACH_MODEL
def test_the_oracle_knows_what_no_measure_knows(model):
    event = top_1(model, "auto")
    for measure in event.measures.values():
        assert event.oracle.evaluation["auroc"] > measure.evaluation["auroc"]
        assert event.oracle.evaluation["nll"] < measure.evaluation["nll"]
