"""Scores of a ranking: AUROC and the risk-coverage curve."""

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from score_strategies import judged_by_table, judged_without_bins
from sklearn.metrics import average_precision_score, roc_curve

from howsure.statistics.scores import SCORES, Predictions
from howsure.statistics.scores.ranking import selective_risks


def ranked(hits_by_uncertainty, uncertainty=None):
    hits = np.asarray(hits_by_uncertainty, dtype=np.bool_)
    if uncertainty is None:
        uncertainty = np.arange(len(hits), dtype=np.float64)
    return Predictions(uncertainty=uncertainty, hits=hits, probability=np.full(len(hits), 0.5))


def aurc(judged):
    return SCORES["aurc"].compute(judged)


def auroc(judged):
    return SCORES["auroc"].compute(judged)


@given(judged_by_table())
def test_aurc_by_counting_pairs(judged):
    """The chance to be among the ``j`` most certain, sample by sample: O(n^2)."""
    n_samples = judged.n_samples
    risks = np.zeros(n_samples)
    for value in judged.uncertainty[~judged.hits]:
        before = np.sum(judged.uncertainty < value)
        tied = np.sum(judged.uncertainty == value)
        for j in range(1, n_samples + 1):
            risks[j - 1] += min(max((j - before) / tied, 0.0), 1.0) / j
    assert aurc(judged) == pytest.approx(risks.mean(), abs=1e-12)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6),
)
def test_ties_are_the_mean_over_all_their_orders(samples):
    judged = ranked([hit for _, hit in samples], np.array([float(u) for u, _ in samples]))
    curves = [
        np.cumsum([not hit for _, hit in order]) / np.arange(1, len(samples) + 1)
        for order in permutations(samples)
        if all(first[0] <= second[0] for first, second in pairwise(order))
    ]
    np.testing.assert_allclose(
        selective_risks(judged.by_uncertainty), np.mean(curves, axis=0), atol=1e-12
    )


def test_auroc_wants_a_hit_and_an_error():
    assert auroc(ranked([1, 1])) is None
    assert auroc(ranked([0, 0])) is None


@given(
    st.integers(1, 4).flatmap(
        lambda errors: st.integers(1, 5).flatmap(
            lambda n_hits: st.tuples(
                st.permutations([True] * n_hits + [False] * errors),
                st.permutations([True] * n_hits + [False] * errors),
            )
        )
    )
)
def test_roc_dominance_is_risk_coverage_dominance(pair):
    """Ding et al., Theorem 1: at equal accuracy, one curve dominates if the other does."""
    first, second = map(ranked, pair)
    risk_dominates = (
        selective_risks(first.by_uncertainty) <= selective_risks(second.by_uncertainty) + 1e-12
    ).all()
    grid = np.arange(len(pair[0]) + 1) / max(1, int(np.sum(pair[0])))
    roc_dominates = (detected(first, grid) >= detected(second, grid) - 1e-12).all()
    assert risk_dominates == roc_dominates


def detected(judged, false_alarms):
    """Highest share of errors found at each share of hits given up: scikit-learn's ROC curve."""
    false_positive, true_positive, _ = roc_curve(
        ~judged.hits, judged.uncertainty, drop_intermediate=False
    )
    reached = np.searchsorted(false_positive, np.minimum(false_alarms, 1.0) + 1e-9) - 1
    return true_positive[reached]


@given(st.permutations([True] * 5 + [False] * 3), st.data())
def test_swapping_an_error_back_lowers_risk_and_raises_auroc(hits, data):
    places = [at for at in range(7) if not hits[at] and hits[at + 1]]
    assume(places)
    at = data.draw(st.sampled_from(places))
    swapped = list(hits)
    swapped[at], swapped[at + 1] = hits[at + 1], hits[at]
    assert aurc(ranked(swapped)) < aurc(ranked(hits))
    assert auroc(ranked(swapped)) > auroc(ranked(hits))


def test_aurc_ranks_worsened_networks_where_auroc_and_aupr_rank_them_backwards():
    """Ding et al., Table 1: turn the m least confident correct answers of a network wrong.

    Each step makes the network worse, which the risk-coverage curve says; finding errors gets
    easier all the same.
    """
    rng = np.random.default_rng(7)
    accuracy = rng.beta(12.0, 0.6, size=10_000)
    hits = rng.random(10_000) < accuracy
    uncertainty = -np.log(accuracy)
    worst_first = np.flatnonzero(hits)[np.argsort(-uncertainty[hits], kind="stable")]
    risk, area, precision = [], [], []
    for turned in (0, 20, 100, 300):
        worse = hits.copy()
        worse[worst_first[:turned]] = False
        judged = ranked(worse, uncertainty)
        risk.append(aurc(judged))
        area.append(auroc(judged))
        precision.append(average_precision_score(~worse, uncertainty))
    assert risk == sorted(risk)
    assert area == sorted(area)
    assert precision == sorted(precision)
    assert len(set(risk)) == len(set(area)) == len(set(precision)) == 4


class TestAreasOverRanks:
    @given(judged_by_table() | judged_without_bins())
    def test_augrc_is_what_auroc_and_accuracy_make_it(self, judged):
        """Traub et al. 2024: (1 - AUROC) a (1 - a) + (1 - a)^2 / 2, exactly."""
        accuracy = judged.hits.mean()
        area = SCORES["auroc"].compute(judged)
        expected = (1 - accuracy) ** 2 / 2
        if area is not None:
            expected += (1 - area) * accuracy * (1 - accuracy)
        assert SCORES["augrc"].compute(judged) == pytest.approx(expected, abs=1e-12)

    @given(judged_by_table() | judged_without_bins())
    def test_e_aurc_is_the_excess_over_the_best_ranking(self, judged):
        oracle = replace(judged, uncertainty=(~judged.hits).astype(np.float64))
        best = SCORES["aurc"].compute(oracle)
        excess = SCORES["aurc"].compute(judged) - best
        assert SCORES["e_aurc"].compute(judged) == pytest.approx(max(excess, 0.0), abs=1e-12)

    def test_by_hand(self):
        """Hits but for the fourth: risks 0, 0, 0, 1/4, 1/5; at best 0, 0, 0, 0, 1/5."""
        judged = Predictions(
            uncertainty=np.arange(5.0),
            hits=np.array([True, True, True, False, True]),
            probability=np.full(5, 0.8),
        )
        assert SCORES["aurc"].compute(judged) == pytest.approx((1 / 4 + 1 / 5) / 5)
        assert SCORES["e_aurc"].compute(judged) == pytest.approx(1 / 4 / 5)
        # Errors kept: 0 up to coverage 3/5, then 1/5 of all at 4/5 and at 1.
        area = 1 / 5 * (0 + 1 / 5) / 2 + 1 / 5 * 1 / 5
        assert SCORES["augrc"].compute(judged) == pytest.approx(area)
        assert SCORES["aupr"].compute(judged) == pytest.approx(1 / 2)
