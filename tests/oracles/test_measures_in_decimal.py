"""Measures against 120-digit decimal arithmetic."""

import decimal
from decimal import Decimal

import numpy as np
import pytest

from howsure.statistics.measures import columns
from howsure.statistics.records.build import score_uncertainty
from howsure.statistics.softmax import n_recorded_classes, rank_scores

DIGITS = decimal.Context(prec=120, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def exact_measures(logits, top_k):
    """Return each column for one row of logits, by the textbook formulas."""
    with decimal.localcontext(DIGITS):
        weights = sorted((Decimal(float(z)).exp() for z in logits), reverse=True)
        total = sum(weights)
        p = [weight / total for weight in weights]
        exact = {"entropy": -sum(share * share.ln() for share in p), "neg_log_pmax": -p[0].ln()}
        exact |= {"margin": 1 - (p[0] - p[1]), "energy": -total.ln()}
        for k in top_k:
            exact[f"neg_log_topk_mass_{k}"] = -sum(p[:k]).ln()
        return {name: float(value) for name, value in exact.items()}


SIZES = [(2, 40, (1,)), (3, 40, (1, 2)), (10, 20, (1, 5)), (1000, 1, (1, 5, 20))]


@pytest.mark.parametrize("scale", [1.0, 5.0, 20.0, 50.0])
@pytest.mark.parametrize(("n_classes", "n_samples", "top_k"), SIZES)
def test_measures_agree_with_exact_arithmetic(n_classes, n_samples, top_k, scale):
    logits = np.random.default_rng(n_classes).normal(scale=scale, size=(n_samples, n_classes))
    exact = [exact_measures(row, top_k) for row in logits]
    ranked = rank_scores(logits, n_top=n_recorded_classes(n_classes, top_k))
    stored = score_uncertainty(logits, top_k=top_k, logits=True)
    for name, measure, k in columns(top_k, logits=True):
        expected = np.array([row[name] for row in exact])
        np.testing.assert_allclose(measure.compute(ranked, k), expected, rtol=1e-12)
        seen = np.abs(expected) >= 1e-37
        np.testing.assert_allclose(stored[name][seen], expected[seen], rtol=1.3e-7)
