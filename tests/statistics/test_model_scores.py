"""Scores of the model itself, from its logits by scipy and scikit-learn."""

from functools import partial

import numpy as np
import pytest
from sample_strategies import records_of, simulated_records
from scipy.special import log_softmax, softmax
from scipy.stats import entropy
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score, top_k_accuracy_score

from howsure.statistics.measures.passes import averaged_columns, slope_columns
from howsure.statistics.model_scores import model_scores

LOGITS = np.random.default_rng(0).normal(size=(300, 7)) * 3.0
LABELS = np.random.default_rng(1).integers(0, 7, 300)


def scores_of(logits, labels, top_k=(1, 2)):
    return model_scores(records_of(logits, labels, top_k=top_k), top_k=top_k)


def accuracies(labels, probability):
    score = partial(top_k_accuracy_score, labels, probability, labels=range(7))
    return {k: score(k=k) for k in (1, 2, 5)}


def test_against_scikit_learn():
    """Neither halves the multiclass Brier score: it is the sum over classes."""
    found, probability = scores_of(LOGITS, LABELS), softmax(LOGITS, axis=1)
    assert found.n_samples == 300
    assert found.nll == pytest.approx(log_loss(LABELS, probability, labels=range(7)), rel=1e-9)
    brier = brier_score_loss(LABELS, probability, scale_by_half=False)
    assert found.brier_multiclass == pytest.approx(brier, rel=1e-9)
    assert found.mean_entropy == pytest.approx(entropy(probability, axis=1).mean(), rel=1e-6)
    assert found.accuracy == pytest.approx(accuracies(LABELS, probability))


def test_accuracy_and_count_above_a_confidence():
    confidence = softmax(LOGITS, axis=1).max(axis=1)
    right = LOGITS.argmax(axis=1) == LABELS
    rows = scores_of(LOGITS, LABELS).by_confidence
    assert rows[0].count == 300
    for row in rows:
        above = confidence >= row.confidence
        assert (row.count, row.accuracy) == (above.sum(), pytest.approx(right[above].mean()))
    last = scores_of(np.zeros((4, 10)), np.zeros(4, dtype=np.int64)).by_confidence[-1]
    assert (last.count, last.accuracy) == (0, None)
    assert model_scores(records_of(LOGITS, LABELS).take(np.arange(0)), top_k=(1,)) is None


def test_a_label_that_is_ruled_out_leaves_the_likelihood_undefined():
    """Also one that the mean of passes rules out."""
    logits = np.array([[0.0, -np.inf, 1.0], [0.0, 1.0, 2.0]])
    found = scores_of(logits, np.array([1, 2]), top_k=(1,))
    assert (found.nll, list(found.accuracy)) == (None, [1])
    expected = np.mean(np.sum((softmax(logits, axis=1) - np.eye(3)[[1, 2]]) ** 2, axis=1))
    assert found.brier_multiclass == pytest.approx(expected)
    passes = np.zeros((2, 2, 3))
    passes[0, 0, 1] = -np.inf
    records = averaged(passes, np.array([1, 0]))
    one, two = model_scores(records, top_k=(1, 2)).passes["dropout_variance"]
    assert one.nll is None
    assert two.nll == pytest.approx(-(np.log(1 / 6) + np.log(1 / 3)) / 2)


def averaged(passes, labels, measure="dropout_variance"):
    """Records of the first pass's model, with columns of all passes."""
    log_p = log_softmax(passes, axis=2)
    base = records_of(log_p[:, 0], labels, top_k=(1, 2))
    return base.with_passes(averaged_columns(measure, log_p, labels))


@pytest.mark.parametrize("n_passes", [2, 12])
def test_rows_by_passes_against_scikit_learn(n_passes):
    rng = np.random.default_rng(5)
    passes = rng.normal(size=(300, 1, 7)) * 2 + rng.normal(size=(300, n_passes, 7))
    labels = rng.integers(0, 7, 300)
    records = averaged(passes, labels, "ensemble_variance")
    found = model_scores(records, top_k=(1, 2)).passes["ensemble_variance"]
    assert [row.passes for row in found] == [n for n in (1, 2, 3, 5, 10, 12) if n <= n_passes]
    softmaxes = softmax(passes, axis=2)
    for row in found:
        first = softmaxes[:, : row.passes]
        mean, areas = first.mean(axis=1), dict.fromkeys((1, 2, 5))
        assert row.nll == pytest.approx(log_loss(labels, mean, labels=range(7)), rel=1e-9)
        assert row.accuracy == pytest.approx(accuracies(labels, mean))
        if row.passes > 1:
            spread = [np.linalg.norm(np.cov(p.T), 2) for p in first]
            areas = {k: roc_auc_score(~records.hits(k), spread) for k in areas}
        assert row.auroc == pytest.approx(areas, abs=1e-4)


def test_rows_of_a_gradient_have_no_mean():
    records = simulated_records(80, seed=6, top_k=(1,))
    slopes = np.random.default_rng(6).normal(size=(80, 4))
    columns = (slope_columns("gradient_norm", slopes, exact=exact) for exact in (False, True))
    found = [model_scores(records.with_passes(own), top_k=(1,)).passes for own in columns]
    rows = found[0]["gradient_norm"]
    assert ([row.passes for row in rows], found[1]) == ([1, 2, 3, 4], {})
    for row in rows:
        assert row.accuracy is row.nll is None
        norm = np.linalg.norm(slopes[:, : row.passes], axis=1)
        assert row.auroc[1] == pytest.approx(roc_auc_score(~records.hits(1), norm), abs=1e-6)
