import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.stats import sem

from howsure.statistics.bins.fit import candidate_bins, choose_bins


@pytest.mark.parametrize(
    ("n_samples", "expected"),
    [
        (1, (1,)),
        (49, (1,)),
        (50, (1, 2)),
        (2499, (1, 2, 5, 10, 15, 20, 30, 50, 75)),
        (2500, (1, 2, 5, 10, 15, 20, 30, 50, 75, 100)),
    ],
)
def test_a_candidate_leaves_25_samples_to_a_bin(n_samples, expected):
    assert candidate_bins(n_samples) == expected


@given(npst.arrays(np.float64, (4, 6), elements=st.floats(0.1, 1.0)))
def test_the_rule_by_hand(nll):
    n_bins = (1, 2, 5, 10)
    best = min(range(4), key=lambda index: nll[index].mean())
    allowed = [
        n_bins[index]
        for index in range(4)
        if index == best or (nll[index] - nll[best]).mean() <= sem(nll[index] - nll[best])
    ]
    assert choose_bins(n_bins, nll) == min(allowed)


def test_an_infinite_candidate_is_passed_over():
    nll = np.array([[np.inf, 0.1, 0.1], [0.5, 0.5, 0.5]])
    assert choose_bins((1, 2), nll) == 2
    assert choose_bins((1, 2), np.full((2, 3), np.inf)) == 1


def test_without_folds_the_fewest_are_chosen():
    assert choose_bins((1, 2), np.empty((2, 0))) == 1
