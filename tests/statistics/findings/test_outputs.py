"""Findings about outputs: a softmax applied twice, and predictions in place of probabilities."""

import numpy as np
import pytest
from sample_strategies import calibrated, found_in
from scipy.special import softmax

SOFTMAX_TWICE, NOT_PROBABILITIES = "softmax-twice", "not-probabilities"
GIVEN = {"source": "probabilities", "probabilities": True}


@pytest.mark.parametrize(("n_classes", "factor"), [(2, 1.0), (3, 3.0), (10, 1.0), (1000, 3.0)])
def test_a_softmax_of_probabilities(n_classes, factor):
    logits, labels = calibrated(1000, n_classes=n_classes, seed=1, spread=6.0)
    once = softmax(logits * factor, axis=1)
    for scores in (once, once.astype(np.float16)):  # which is precise enough
        figures = found_in(scores, labels)[SOFTMAX_TWICE].figures
        assert figures["largest_confidence"] <= figures["bound"] + 1e-9
        assert figures["bound"] == pytest.approx(np.e / (np.e + n_classes - 1))


def test_whether_a_model_is_unsure_by_design_its_probabilities_do_not_tell():
    logits, labels = calibrated(1000, seed=1, spread=6.0)
    twice = softmax(softmax(logits, axis=1), axis=1)
    finding = found_in(twice, labels, source="inputs", probabilities=True)[SOFTMAX_TWICE]
    assert finding.level == "notice"


@pytest.mark.parametrize(
    ("n_classes", "spread", "factor"), [(2, 0.2, 1.0), (10, 0.2, 1.0), (10, 6.0, 1 / 6)]
)
def test_a_model_that_is_unsure(n_classes, spread, factor):
    """Right to be, or less sure than it could be."""
    logits, labels = calibrated(3000, n_classes=n_classes, seed=3, spread=spread)
    assert SOFTMAX_TWICE not in found_in(logits * factor, labels)


def test_a_rare_doubt_does_not_hide_them():
    logits, labels = calibrated(500, seed=2)
    votes = np.eye(10)[logits.argmax(axis=1)]
    votes[:4] = 0.1
    finding = found_in(votes, labels, **GIVEN)[NOT_PROBABILITIES]
    assert finding.figures["certain"] == 496
    votes[:6] = 0.1
    assert NOT_PROBABILITIES not in found_in(votes, labels, **GIVEN)


def test_a_softmax_in_float32_that_is_as_sure_as_can_be_and_one_of_two_digits():
    logits, labels = calibrated(2000, seed=3, spread=60.0)
    sure = softmax(logits.astype(np.float32), axis=1)
    assert np.mean(sure.max(axis=1) == 1.0) > 0.1
    assert NOT_PROBABILITIES not in found_in(sure, labels, **GIVEN)
    logits, labels = calibrated(2000, seed=4)
    rounded = np.round(softmax(logits, axis=1), 2)
    assert not found_in(rounded / rounded.sum(axis=1, keepdims=True), labels, **GIVEN)
