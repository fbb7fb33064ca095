import numpy as np
import pytest

from howsure.statistics.bins.prior import odds_ratio


def test_odds_ratios_of_the_paper():
    """Finlay & Oberman's example: p = (.99, .95, .8) at an accuracy of .94."""
    ratios = odds_ratio(np.array([0.99, 0.95, 0.8]), 0.94)
    np.testing.assert_allclose(ratios, [6.319, 1.213, 3.917], atol=5e-4)


def test_the_least_ratio_is_one_at_the_accuracy_and_symmetric():
    p = np.linspace(0.01, 0.99, 99)
    assert odds_ratio(np.array([0.3]), 0.3) == pytest.approx([1.0])
    assert (odds_ratio(p, 0.7) >= 1).all()
    np.testing.assert_allclose(odds_ratio(p, 0.7), odds_ratio(1 - p, 0.3))
    np.testing.assert_allclose([odds_ratio(np.array([0.7]), a)[0] for a in p], odds_ratio(p, 0.7))
