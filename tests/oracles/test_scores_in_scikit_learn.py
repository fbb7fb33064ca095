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
def test_scores(judged):
    errors, floor = ~judged.hits, judged.log_floor
    clipped = np.clip(judged.probability, floor, 1.0 - floor)
    expected = {
        "brier": brier_score_loss(judged.hits, judged.probability, pos_label=True),
        "nll": log_loss(judged.hits, clipped, labels=[False, True]),
    }
    if errors.any():
        expected["aupr"] = average_precision_score(errors, judged.uncertainty)
        if judged.hits.any():
            expected["auroc"] = roc_auc_score(errors, judged.uncertainty)
    found = {name: SCORES[name].compute(judged) for name in ("brier", "nll", "auroc", "aupr")}
    defined = {name: score for name, score in found.items() if score is not None}
    assert defined == pytest.approx(expected, rel=1e-12, abs=1e-12)
