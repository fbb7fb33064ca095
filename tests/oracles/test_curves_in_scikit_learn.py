"""Curves against scikit-learn, given errors as the positive class and uncertainty as their score.

Conventions: its thresholds are values and flag ``U >= threshold``, ours lie between values and
flag ``U > threshold``, so the points are compared and the thresholds are not; its
precision-recall curve runs towards falling recall and ends with a point (1, 0), which ours leaves
out, as nothing is flagged there.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from sample_strategies import judged_uncertainties
from sklearn.metrics import average_precision_score
from sklearn.metrics import precision_recall_curve as their_precision_recall
from sklearn.metrics import roc_curve as their_roc

from howsure.statistics.diagnostics.curves import fit_curves
from howsure.statistics.ranking import merge_underflow, ranking_of


@given(judged_uncertainties())
def test_roc(sample):
    uncertainty, hits = sample
    assume(hits.any() and not hits.all())
    curve = fit_curves(ranking_of(uncertainty, hits)).roc

    false, true, _ = their_roc(~hits, merge_underflow(uncertainty), drop_intermediate=False)
    assert curve.false_positive_rate == pytest.approx(false, abs=1e-12)
    assert curve.true_positive_rate == pytest.approx(true, abs=1e-12)


@given(judged_uncertainties())
def test_precision_recall(sample):
    uncertainty, hits = sample
    assume(not hits.all())
    curve = fit_curves(ranking_of(uncertainty, hits)).precision_recall
    score = merge_underflow(uncertainty)

    precision, recall, _ = their_precision_recall(~hits, score, drop_intermediate=False)
    assert curve.precision == pytest.approx(precision[-2::-1], abs=1e-12)
    assert curve.recall == pytest.approx(recall[-2::-1], abs=1e-12)
    area = np.diff(curve.recall, prepend=0.0) @ curve.precision
    assert area == pytest.approx(average_precision_score(~hits, score), abs=1e-12)
