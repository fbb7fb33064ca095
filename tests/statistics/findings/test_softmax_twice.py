"""Probabilities that were taken for logits, and models that are only unsure."""

import numpy as np
import pytest
from finding_evidence import calibrated, found_in
from scipy.special import softmax

CODE = "softmax-twice"


@pytest.mark.parametrize("n_classes", [2, 3, 10, 1000])
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_a_softmax_of_probabilities(n_classes, factor):
    logits, labels = calibrated(1000, n_classes=n_classes, seed=1, spread=6.0)
    found = found_in(softmax(logits * factor, axis=1), labels)
    figures = found[CODE].figures
    assert found[CODE].level == "warning"
    assert figures["largest_confidence"] <= figures["bound"] + 1e-9
    assert figures["bound"] == pytest.approx(np.e / (np.e + n_classes - 1))
    assert figures["mean_confidence"] < figures["accuracy"] - 0.1


def test_probabilities_of_half_precision():
    logits, labels = calibrated(1000, seed=2, spread=6.0)
    halves = softmax(logits, axis=1).astype(np.float16)
    assert CODE in found_in(halves, labels)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_a_model_that_is_unsure_and_right_to_be(n_classes):
    logits, labels = calibrated(3000, n_classes=n_classes, seed=3, spread=0.2)
    assert CODE not in found_in(logits, labels)


def test_a_model_that_is_less_sure_than_it_could_be():
    logits, labels = calibrated(3000, seed=4, spread=6.0)
    assert CODE not in found_in(logits / 6.0, labels)
