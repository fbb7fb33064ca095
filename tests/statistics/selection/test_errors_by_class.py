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


def expected(labels, answers, accepted, of, index) -> ClassShare:
    chosen = [i for i in range(len(labels)) if accepted[i] and of[i] == index]
    errors = sum(labels[i] != answers[i] for i in chosen)
    if not chosen:
        return ClassShare(0, 0)
    interval = binomtest(errors, len(chosen)).proportion_ci(LEVEL, method="exact")
    share = errors / len(chosen)
    return ClassShare(len(chosen), errors, share, (interval.low, interval.high))


def same(found: ClassShare, wanted: ClassShare) -> bool:
    counts = (found.n_samples, found.n_errors) == (wanted.n_samples, wanted.n_errors)
    if wanted.share is None or wanted.interval is None:
        return counts and found.share is None and found.interval is None
    return counts and [found.share, *found.interval] == pytest.approx(
        [wanted.share, *wanted.interval], abs=1e-9
    )


@pytest.mark.parametrize("n_classes", [2, 4, 12])
@pytest.mark.parametrize("seed", range(3))
def test_answers_and_samples_of_each_class_are_counted(n_classes: int, seed: int) -> None:
    sets = drawn(400, n_classes, seed)
    found = errors_by_class(*sets, LEVEL)
    labels, answers, accepted = sets
    for one in found:
        assert same(one.named, expected(*sets, answers, one.index))
        assert same(one.labelled, expected(*sets, labels, one.index))

    def least(index: int) -> float:
        both = (expected(*sets, of, index).interval for of in (answers, labels))
        return max((interval[0] for interval in both if interval), default=-1.0)

    present = np.union1d(labels[accepted], answers[accepted])
    assert len(found) == min(5, len(present))
    left_out = [least(index) for index in present if index not in {one.index for one in found}]
    lows = [least(one.index) for one in found]
    assert lows == sorted(lows, reverse=True)
    assert all(low <= lows[-1] + 1e-9 for low in left_out)


def test_a_class_without_accepted_samples_is_left_out() -> None:
    labels, answers = np.array([0, 3, 3, 1]), np.array([3, 3, 0, 1])
    accepted = np.array([True, True, True, False])
    found = errors_by_class(labels, answers, accepted, LEVEL)
    assert {one.index for one in found} == {0, 3}


def test_nothing_accepted_has_no_classes() -> None:
    labels, answers, accepted = drawn(50, 3, 0)
    assert errors_by_class(labels, answers, accepted & False, LEVEL) == ()


def test_weights_count_for_several_samples() -> None:
    labels, answers, accepted = drawn(300, 3, 1)
    weights = np.where(labels == answers, 1.0, 3.0)
    found = errors_by_class(labels, answers, accepted, LEVEL, SampleDesign(weights))
    plain = {one.index: one for one in errors_by_class(labels, answers, accepted, LEVEL)}
    assert len(found) == 3
    for one in found:
        for kind in ("named", "labelled"):
            seen, alone = getattr(one, kind), getattr(plain[one.index], kind)
            right = alone.n_samples - alone.n_errors
            assert seen.share == pytest.approx(3 * alone.n_errors / (3 * alone.n_errors + right))
            assert (seen.n_samples, seen.n_errors) == (alone.n_samples, alone.n_errors)


def test_samples_of_one_group_tell_no_more_than_one() -> None:
    labels, answers, accepted = (np.repeat(part, 6) for part in drawn(80, 3, 2))
    grouped = SampleDesign(groups=np.arange(len(labels)) // 6)
    compared = 0
    for one in errors_by_class(labels, answers, accepted, LEVEL, grouped):
        plain = expected(labels, answers, accepted, labels, one.index)
        if 0 < plain.n_errors < plain.n_samples:
            lower, upper = one.labelled.interval
            assert lower < plain.interval[0]
            assert upper > plain.interval[1]
            compared += 1
    assert compared >= 2
