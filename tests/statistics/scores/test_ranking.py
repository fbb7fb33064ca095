"""Scores of a ranking: AUROC and the risk-coverage curve."""

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import judged_by_table, judged_without_bins

from howsure.statistics.scores import SCORES, Predictions
from howsure.statistics.scores.ranking import selective_risks


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6))
def test_ties_are_the_mean_over_all_their_orders(samples):
    uncertainty, hits = np.array(samples).T
    judged = Predictions(uncertainty=uncertainty, hits=hits > 0, probability=hits / 2)
    curves = [
        np.cumsum([not hit for _, hit in order]) / np.arange(1, len(samples) + 1)
        for order in permutations(samples)
        if all(first[0] <= second[0] for first, second in pairwise(order))
    ]
    risks = selective_risks(judged.by_uncertainty)
    np.testing.assert_allclose(risks, np.mean(curves, axis=0), atol=1e-12)


@given(judged_by_table() | judged_without_bins())
def test_augrc_is_what_auroc_and_accuracy_make_it(judged):
    """Traub et al. 2024: (1 - AUROC) a (1 - a) + (1 - a)^2 / 2, exactly."""
    accuracy = judged.hits.mean()
    area = SCORES["auroc"].compute(judged)
    expected = (1 - accuracy) ** 2 / 2
    if area is not None:
        expected += (1 - area) * accuracy * (1 - accuracy)
    assert SCORES["augrc"].compute(judged) == pytest.approx(expected, abs=1e-12)


@given(judged_by_table() | judged_without_bins())
def test_e_aurc_is_the_excess_over_the_best_ranking(judged):
    oracle = replace(judged, uncertainty=(~judged.hits).astype(np.float64))
    best = SCORES["aurc"].compute(oracle)
    excess = SCORES["aurc"].compute(judged) - best
    assert SCORES["e_aurc"].compute(judged) == pytest.approx(max(excess, 0.0), abs=1e-12)
