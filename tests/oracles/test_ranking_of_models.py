"""What Ding et al. prove and show about ranking models by how they rank their errors."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from howsure.statistics.diagnostics.curves import fit_curves
from howsure.statistics.ranking import ranking_of
from howsure.statistics.scores import SCORES, Predictions


def curves_of(hits_by_certainty):
    hits = np.array(hits_by_certainty, dtype=bool)
    return fit_curves(ranking_of(np.arange(len(hits), dtype=np.float32), hits))


def roc_dominates(ours, theirs):
    """At every false positive rate, at least as many errors found: at the top of each step."""
    rates = np.union1d(ours.false_positive_rate, theirs.false_positive_rate)

    def tops(curve):
        last = np.searchsorted(curve.false_positive_rate, rates, side="right") - 1
        return curve.true_positive_rate[last]

    return bool((tops(ours) >= tops(theirs)).all())


@st.composite
def two_rankings(draw):
    """Two models of equal accuracy; half of the time the second is the first, errors moved up."""
    hits = draw(
        st.lists(st.booleans(), min_size=2, max_size=12).filter(lambda h: 0 < sum(h) < len(h))
    )
    if draw(st.booleans()):
        return hits, draw(st.permutations(hits))
    better = list(hits)
    for place in draw(st.lists(st.integers(0, len(hits) - 2), max_size=8)):
        if not better[place]:
            better[place], better[place + 1] = better[place + 1], better[place]
    return better, hits


@given(two_rankings())
def test_at_equal_accuracy_the_two_dominances_are_one(rankings):
    """Ding et al., Theorem 1."""
    ours, theirs = map(curves_of, rankings)
    by_risk = bool((ours.risk_coverage.risk <= theirs.risk_coverage.risk).all())

    assert roc_dominates(ours.roc, theirs.roc) == by_risk


def densenet(m):
    """A network like one on CIFAR-10 whose ``m`` least confident right answers are made wrong.

    94 % of 10,000 answers are right; log U of right and wrong ones is normal, so far apart that a
    wrong answer is the less certain in nine of ten pairs.
    """
    rng = np.random.default_rng(10)
    hits = np.arange(10_000) < 9_400
    centre, width = np.where(hits, -4.7, -0.9), np.where(hits, 2.4, 1.2)
    uncertainty = np.exp(np.minimum(rng.normal(centre, width), 0.8)).astype(np.float32)
    least_confident = np.argsort(np.where(hits, uncertainty, -np.inf), kind="stable")[::-1]
    hits[least_confident[:m]] = False
    return uncertainty, hits


def test_densenet_m_of_table_1():
    """A model that errs more is worse; AURC says so, AUROC and AUPR say the contrary.

    The text of Ding et al. turns the most certain answers wrong; their table fits the least
    certain alone.
    """
    scores = {"aurc": [], "auroc": [], "aupr": []}
    for m in (0, 20, 100, 300):
        uncertainty, hits = densenet(m)
        judged = Predictions(uncertainty=uncertainty, hits=hits, probability=np.exp(-uncertainty))
        for name, values in scores.items():
            values.append(SCORES[name].compute(judged))
    assert 0.87 < scores["auroc"][0] < 0.93
    assert 0.3 < scores["aupr"][0] < 0.5
    # Larger is worse for AURC, which is right; larger is better for the others: backwards.
    assert all((np.diff(values) > 0).all() for values in scores.values())
