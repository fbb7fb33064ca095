"""Errors of accepted samples by class, against plain loops and scipy."""

import numpy as np
import pytest
from scipy.stats import binomtest

from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.errors_by_class import ClassShare, errors_by_class

LEVEL = 0.95


def drawn(n: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, answers and which samples are accepted."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(n_classes, n, p=rng.dirichlet(np.full(n_classes, 0.7)))
    answers = np.where(rng.random(n) < 0.8, labels, rng.integers(0, n_classes, n))
    return labels, answers, rng.random(n) < 0.7


def expected(labels, answers, accepted, of, index) -> tuple:
    """Samples, errors, share and interval of a class, by a plain loop and scipy."""
    wrong = [labels[i] != answers[i] for i in np.flatnonzero(accepted) if of[i] == index]
    if not wrong:
        return 0, 0, -1.0, -1.0, -1.0
    interval = binomtest(sum(wrong), len(wrong)).proportion_ci(LEVEL, method="exact")
    return len(wrong), sum(wrong), np.mean(wrong), interval.low, interval.high


def figures(found: ClassShare) -> tuple:
    share = (-1.0, -1.0, -1.0) if found.share is None else (found.share, *found.interval)
    return found.n_samples, found.n_errors, *share


@pytest.mark.parametrize("n_classes", [2, 4, 12])
@pytest.mark.parametrize("seed", range(2))
def test_answers_and_samples_of_each_class_are_counted(n_classes: int, seed: int) -> None:
    labels, answers, accepted = sets = drawn(400, n_classes, seed)
    found = errors_by_class(*sets, LEVEL)
    for one in found:
        named, labelled = (expected(*sets, of, one.index) for of in (answers, labels))
        assert figures(one.named) == pytest.approx(named, abs=1e-9)
        assert figures(one.labelled) == pytest.approx(labelled, abs=1e-9)

    def least(index: int) -> float:
        return max(expected(*sets, of, index)[3] for of in (answers, labels))

    present = np.union1d(labels[accepted], answers[accepted])
    assert len(found) == min(5, len(present))
    lows = [least(one.index) for one in found]
    assert lows == sorted(lows, reverse=True)
    left_out = set(present.tolist()) - {one.index for one in found}
    assert all(least(index) <= lows[-1] + 1e-9 for index in left_out)


def test_a_class_without_accepted_samples_is_left_out() -> None:
    labels, answers = np.array([0, 3, 3, 1]), np.array([3, 3, 0, 1])
    accepted = np.array([True, True, True, False])
    assert {one.index for one in errors_by_class(labels, answers, accepted, LEVEL)} == {0, 3}
    assert errors_by_class(labels, answers, accepted & False, LEVEL) == ()


def test_samples_of_none_of_the_classes_count_for_their_answers_alone() -> None:
    labels, answers = np.array([0, -1, -1, 1, 1]), np.array([0, 0, 2, 1, 1])
    found = {one.index: one for one in errors_by_class(labels, answers, answers >= 0, LEVEL)}
    counts = {
        at: (*figures(one.named)[:2], *figures(one.labelled)[:2]) for at, one in found.items()
    }
    assert counts == {0: (2, 1, 1, 0), 1: (2, 0, 2, 0), 2: (1, 1, 0, 0)}


def test_weights_count_for_several_samples() -> None:
    labels, answers, accepted = drawn(300, 3, 1)
    weights = np.where(labels == answers, 1.0, 3.0)
    found = errors_by_class(labels, answers, accepted, LEVEL, SampleDesign(weights))
    assert len(found) == 3
    for one in found:
        for seen, of in ((one.named, answers), (one.labelled, labels)):
            n, errors, *_ = expected(labels, answers, accepted, of, one.index)
            assert seen.share == pytest.approx(3 * errors / (2 * errors + n))
            assert (seen.n_samples, seen.n_errors) == (n, errors)


def test_samples_of_one_group_tell_no_more_than_one() -> None:
    labels, answers, accepted = (np.repeat(part, 6) for part in drawn(80, 3, 2))
    grouped = SampleDesign(group=np.arange(len(labels)) // 6)
    compared = 0
    for one in errors_by_class(labels, answers, accepted, LEVEL, grouped):
        n, errors, _, low, high = expected(labels, answers, accepted, labels, one.index)
        if 0 < errors < n:
            lower, upper = one.labelled.interval
            assert lower < low
            assert upper > high
            compared += 1
    assert compared >= 2
