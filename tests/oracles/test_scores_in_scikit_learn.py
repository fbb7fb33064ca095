"""Scores against scikit-learn.

Conventions: its Brier score is ours; its ``log_loss`` clips at the float's epsilon, which no
probability here reaches, and is in nats as ours; its ROC curve is given errors as the positive
class and uncertainty as their score, and counts a tie half, as ours; its average precision, like
ours, takes the tied together and draws no line between points, but is 0 where there is no error.
"""

import numpy as np
import pytest
from hypothesis import given
from sample_strategies import judged_by_table, judged_without_bins
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

from howsure.statistics.scores import SCORES


@given(judged_by_table() | judged_without_bins())
def test_brier(judged):
    expected = brier_score_loss(judged.hits, judged.probability, pos_label=True)
    assert SCORES["brier"].compute(judged) == pytest.approx(expected, abs=1e-14)


@given(judged_by_table() | judged_without_bins())
def test_nll(judged):
    clipped = np.clip(judged.probability, judged.log_floor, 1.0 - judged.log_floor)
    expected = log_loss(judged.hits, clipped, labels=[False, True])
    assert SCORES["nll"].compute(judged) == pytest.approx(expected, rel=1e-12)


@given(judged_by_table() | judged_without_bins())
def test_auroc(judged):
    found = SCORES["auroc"].compute(judged)
    if judged.hits.all() or not judged.hits.any():
        assert found is None
    else:
        assert found == pytest.approx(roc_auc_score(~judged.hits, judged.uncertainty), abs=1e-12)


@given(judged_by_table() | judged_without_bins())
def test_aupr(judged):
    found = SCORES["aupr"].compute(judged)
    if judged.hits.all():
        assert found is None
    else:
        expected = average_precision_score(~judged.hits, judged.uncertainty)
        assert found == pytest.approx(expected, abs=1e-12)
