"""Votes that were declared to be probabilities."""

import numpy as np
from finding_evidence import calibrated, found_in
from scipy.special import softmax

CODE = "not-probabilities"
GIVEN = {"source": "probabilities", "probabilities": True}


def test_votes_are_found():
    logits, labels = calibrated(500, seed=1)
    votes = np.eye(10)[logits.argmax(axis=1)]
    finding = found_in(votes, labels, **GIVEN)[CODE]
    assert finding.level == "warning"
    assert finding.figures == {
        "certain": 500,
        "samples": 500,
        "accuracy": np.mean(logits.argmax(axis=1) == labels),
    }


def test_a_rare_doubt_does_not_hide_them():
    logits, labels = calibrated(500, seed=2)
    votes = np.eye(10)[logits.argmax(axis=1)]
    votes[:4] = 0.1
    assert found_in(votes, labels, **GIVEN)[CODE].figures["certain"] == 496
    votes[:6] = 0.1
    assert CODE not in found_in(votes, labels, **GIVEN)


def test_a_softmax_in_float32_that_is_as_sure_as_can_be():
    logits, labels = calibrated(2000, seed=3, spread=60.0)
    sure = softmax(logits.astype(np.float32), axis=1)
    assert np.mean(sure.max(axis=1) == 1.0) > 0.1
    assert CODE not in found_in(sure, labels, **GIVEN)


def test_probabilities_of_two_digits():
    logits, labels = calibrated(2000, seed=4)
    rounded = np.round(softmax(logits, axis=1), 2)
    assert not found_in(rounded / rounded.sum(axis=1, keepdims=True), labels, **GIVEN)
