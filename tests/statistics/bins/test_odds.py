import numpy as np

from howsure.statistics.bins.prior import odds_ratio


def test_odds_ratios_of_the_paper():
    """Finlay & Oberman's example: p = (.99, .95, .8) at an accuracy of .94."""
    ratios = odds_ratio(np.array([0.99, 0.95, 0.8]), 0.94)
    np.testing.assert_allclose(ratios, [6.319, 1.213, 3.917], atol=5e-4)
