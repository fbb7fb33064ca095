import numpy as np
from scipy.stats import binomtest

from howsure.statistics.operating_point import consequences, expected_volume

U = np.arange(1000, dtype=np.float32)
HITS = U % 25 != 7  # one in twenty-five is wrong


def test_it_is_the_volume_times_the_shares_and_their_exact_intervals():
    seen = consequences(U, HITS, 799.0, level=0.95)
    found = expected_volume(seen, 10_000, level=0.95)
    assert (found.volume, found.accepted, found.errors, found.reviewed) == (10_000, 8000, 320, 2000)
    for interval, part in ((found.accepted_interval, 800), (found.errors_interval, 32)):
        share = binomtest(part, 1000).proportion_ci(0.95)
        np.testing.assert_allclose(interval, (10_000 * share.low, 10_000 * share.high), rtol=1e-6)


def test_errors_allow_for_the_coverage_as_well():
    """Their interval is wider than that of a coverage that is known."""
    seen = consequences(U, HITS, 99.0, level=0.95)
    found = expected_volume(seen, 1000, level=0.95)
    given = [found.accepted * end for end in seen.risk_interval]
    assert found.errors_interval[1] - found.errors_interval[0] > given[1] - given[0]


def test_of_nothing_nothing_is_expected():
    seen = consequences(U, HITS, -1.0, level=0.95)
    found = expected_volume(seen, 7, level=0.95)
    assert (found.accepted, found.errors, found.reviewed) == (0, 0, 7)
