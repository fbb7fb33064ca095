import numpy as np
import pytest
from scipy.stats import ttest_rel

from howsure.statistics.comparison import PairedDifference, paired_difference
from howsure.statistics.plain import to_plain


def test_is_the_statistic_of_a_paired_t_test():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=10) + 0.3, rng.normal(size=10)
    found = paired_difference(one.tolist(), other.tolist())
    test = ttest_rel(one, other)
    assert found.mean / found.standard_error == pytest.approx(test.statistic, rel=1e-12)
    assert found.pairs == 10


def test_pairs_without_both_are_left_out():
    found = paired_difference((0.5, None, 0.9, 0.2), (0.1, 0.3, None, 0.4))
    assert found.mean == pytest.approx(0.1)
    assert found.pairs == 2
    assert paired_difference((None, 1.0), (1.0, None)) is None
    assert paired_difference((), ()) is None


def test_one_pair_has_no_error():
    found = paired_difference((0.5,), (0.25,))
    assert found == PairedDifference(0.25, None, 1)
    assert not found.clear
    assert to_plain(found) == {"mean": 0.25, "standard_error": None, "pairs": 1}


def test_clear_is_beyond_two_standard_errors():
    assert PairedDifference(-0.21, 0.1, 10).clear
    assert not PairedDifference(0.19, 0.1, 10).clear
