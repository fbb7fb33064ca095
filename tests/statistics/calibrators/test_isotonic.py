"""Isotonic regression, against scikit-learn, which also gives tied points their mean first."""

import numpy as np
import pytest
from score_strategies import simulated_records
from sklearn.isotonic import IsotonicRegression

from howsure.statistics.calibrators.isotonic import fit_isotonic
from howsure.statistics.fit.event_samples import EventSamples


@pytest.mark.parametrize("tied", [False, True])
def test_is_that_of_scikit_learn(tied):
    records = simulated_records(800, seed=6, sharpness=2.0)
    if tied:
        column = records.uncertainty["neg_log_topk_mass_1"]
        column[:] = np.round(column, 1)
    rows = np.arange(0, 800, 2)
    samples = EventSamples(records, 1)
    x, hits = samples.log_odds, samples.hits
    expected = IsotonicRegression(out_of_bounds="clip").fit(x[rows], hits[rows])
    fitted = fit_isotonic(x[rows], hits[rows])
    np.testing.assert_allclose(fitted.probability(x), expected.predict(x), atol=1e-9)
