"""Worked examples of the papers: Finlay & Oberman; the same authors' anonymous ECE paper.

Four-digit numbers are compared to half a unit in their last digit.
"""

import numpy as np
import pytest

from howsure.statistics.bins.prior import odds_ratio
from howsure.statistics.scores.binned_error import equal_range_ece
from howsure.statistics.scores.information import conditional_entropy, expected_odds_ratio
from howsure.statistics.scores.predictions import Predictions
from howsure.statistics.scores.ranking import auroc


def eor_of(probability):
    """The expected odds ratio of bins of equal weight, whose accuracy is their mean."""
    probability = np.asarray(probability, dtype=np.float64)
    weights = np.full(len(probability), 1.0 / len(probability))
    return expected_odds_ratio(weights, probability, float(probability.mean()))


def auroc_of(probability_by_uncertainty):
    """Area under the curve of bins of equal weight, most certain first."""
    probability = np.asarray(probability_by_uncertainty, dtype=np.float64)
    return auroc(probability, 1.0 - probability)


def test_the_order_of_four_coins_shows_in_auroc_alone():
    coins = [15 / 16, 1 / 2, 1 / 2, 1 / 16]
    for surest, area in ((coins, 0.828), (coins[::-1], 0.172)):
        assert auroc_of(surest) == pytest.approx(area, abs=5e-4)
        assert eor_of(surest) == pytest.approx(8.0, rel=1e-14)


def test_agents():
    for errors, expected in (((38, 40, 42), 1.0357), ((3, 41, 76), 5.6158)):
        assert eor_of(1.0 - np.array(errors) / 1000.0) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("weights", "probability", "accuracy", "ratios", "expected"), [
    ((0.55, 0.31, 0.14), (0.99, 0.95, 0.8), 0.94, (6.319, 1.213, 3.917), (4.400, 5e-4)),
    ((0.4, 0.5, 0.1), (0.999, 0.94, 0.9), 0.95, (52.58, 1.213, 2.111), (21.85, 5e-3)),
])  # fmt: skip
def test_odds_ratios_of_bins(weights, probability, accuracy, ratios, expected):
    found = odds_ratio(np.array(probability), accuracy)
    np.testing.assert_allclose(found, ratios, rtol=5e-4)
    eor = expected_odds_ratio(np.array(weights), np.array(probability), accuracy)
    assert eor == pytest.approx(expected[0], abs=expected[1])


MODELS = [((0.15, 0.4, 0.8), (3.584, 5e-4), 0.7918), ((0.4, 0.5, 0.99), (20.80, 5e-3), 0.7812)]


@pytest.mark.parametrize(("probability", "eor", "area"), MODELS)
def test_a_model_of_larger_eor_and_smaller_auroc(probability, eor, area):
    assert eor_of(probability) == pytest.approx(eor[0], abs=eor[1])
    assert auroc_of(probability[::-1]) == pytest.approx(area, abs=5e-5)


BITS = [((0.94, 0.999), (16.73, 5e-3), 0.1694), ((0.95, 0.99), (2.382, 5e-4), 0.1836)]


@pytest.mark.parametrize(("probability", "eor", "bits"), BITS)
def test_eor_against_conditional_entropy(probability, eor, bits):
    assert eor_of(probability) == pytest.approx(eor[0], abs=eor[1])
    rank = np.tile(np.arange(1000), 2)
    bins = np.repeat([0, 1], 1000)
    hits = rank < 1000 * np.take(probability, bins)
    judged = Predictions(uncertainty=rank, hits=hits, probability=np.full(2000, 0.5), bins=bins)
    assert conditional_entropy(judged) == pytest.approx(bits, abs=5e-5)


def test_a_confidence_of_exactly_one_belongs_to_the_last_bin():
    u, hits, probability = np.array([[1.0, 0.0], [1, 0], [0.95, 1.0]])
    judged = Predictions(uncertainty=u, hits=hits > 0, probability=probability)
    assert equal_range_ece(judged, 10) == pytest.approx(0.475, rel=1e-14)
