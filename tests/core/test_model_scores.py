"""Scores of the model itself, from its logits by scipy and scikit-learn."""

import json

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from scipy.stats import entropy
from sklearn.metrics import brier_score_loss, log_loss, top_k_accuracy_score

from service.core.model_scores import model_scores
from service.core.records import build_records
from service.core.tie_keys import tie_keys


@pytest.fixture(scope="module")
def logits():
    return np.random.default_rng(0).normal(size=(300, 7)) * 3.0


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(1).integers(0, 7, 300)


def scores_of(logits, labels, top_k=(1, 2)):
    records = build_records(logits, labels, tie_keys=tie_keys(logits, 0), top_k=top_k)
    return model_scores(records, top_k=top_k)


def test_against_scikit_learn(logits, labels):
    found = scores_of(logits, labels)
    probability = softmax(logits, axis=1)
    assert found.n_samples == 300
    assert found.nll == pytest.approx(log_loss(labels, probability, labels=range(7)), rel=1e-9)
    # scikit-learn halves no multiclass Brier score: it is the sum over classes, as ours.
    expected = np.mean(np.sum((probability - np.eye(7)[labels]) ** 2, axis=1))
    assert found.brier_multiclass == pytest.approx(expected, rel=1e-12)
    assert found.brier_multiclass == pytest.approx(
        brier_score_loss(labels, probability, scale_by_half=False), rel=1e-9
    )
    assert found.mean_entropy == pytest.approx(entropy(probability, axis=1).mean(), rel=1e-6)
    assert list(found.accuracy) == [1, 2, 5]
    for k, accuracy in found.accuracy.items():
        assert accuracy == pytest.approx(
            top_k_accuracy_score(labels, probability, k=k, labels=range(7))
        )


def test_accuracy_and_count_above_a_confidence(logits, labels):
    confidence = softmax(logits, axis=1).max(axis=1)
    right = logits.argmax(axis=1) == labels
    rows = scores_of(logits, labels).by_confidence
    assert rows[0].count == 300
    for row in rows:
        above = confidence >= row.confidence
        assert row.count == above.sum()
        assert row.accuracy == pytest.approx(right[above].mean())


def test_no_sample_above_a_confidence_has_no_accuracy():
    flat = scores_of(np.zeros((4, 10)), np.zeros(4, dtype=np.int64))
    row = flat.by_confidence[-1]
    assert (row.count, row.accuracy) == (0, None)


def test_a_label_that_is_ruled_out_leaves_the_likelihood_undefined():
    logits = np.array([[0.0, -np.inf, 1.0], [0.0, 1.0, 2.0]])
    found = scores_of(logits, np.array([1, 2]), top_k=(1,))
    assert found.nll is None
    p = softmax(logits, axis=1)
    expected = np.mean(np.sum((p - np.eye(3)[[1, 2]]) ** 2, axis=1))
    assert found.brier_multiclass == pytest.approx(expected)


def test_confidences_next_to_one_are_told_apart():
    logits = np.zeros((3, 5))
    logits[:, 0] = [20.0, 60.0, 700.0]
    found = scores_of(logits, np.zeros(3, dtype=np.int64), top_k=(1,))
    assert [row.count for row in found.by_confidence] == [3] * len(found.by_confidence)
    log_p = log_softmax(logits, axis=1)[:, 0]
    assert found.nll == pytest.approx(-log_p.mean(), rel=1e-9)


def test_is_plain_data(logits, labels):
    plain = scores_of(logits, labels).as_dict()
    assert json.loads(json.dumps(plain)) == plain


def test_nothing_scores_nothing(logits, labels):
    records = build_records(logits, labels, tie_keys=tie_keys(logits, 0), top_k=(1,))
    assert model_scores(records.take(np.arange(0)), top_k=(1,)) is None
