"""Isotonic regression, against scikit-learn, which also gives tied points their mean first."""

import numpy as np
import pytest
from score_strategies import simulated_records
from sklearn.isotonic import IsotonicRegression

from service.core.calibrators.isotonic import fit_isotonic
from service.core.calibrators.top_mass import log_odds


@pytest.mark.parametrize("tied", [False, True])
def test_is_that_of_scikit_learn(tied):
    records = simulated_records(800, seed=6, sharpness=2.0)
    if tied:
        column = records.uncertainty["neg_log_topk_mass_1"]
        column[:] = np.round(column, 1)
    rows = np.arange(0, 800, 2)
    x = log_odds(records, 1)
    expected = IsotonicRegression(out_of_bounds="clip").fit(x[rows], records.hits(1)[rows])
    fitted = fit_isotonic(records, 1, rows)
    np.testing.assert_allclose(fitted(records).probability, expected.predict(x), atol=1e-9)


def test_rises_and_stays_a_probability():
    records = simulated_records(500, seed=7)
    said = fit_isotonic(records, 5, np.arange(500))(records).probability
    order = np.argsort(log_odds(records, 5))
    assert (np.diff(said[order]) >= 0.0).all()
    assert ((said >= 0.0) & (said <= 1.0)).all()
