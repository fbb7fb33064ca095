"""Samples that are there more than once, with one label or with several."""

import numpy as np
import pytest
from sample_strategies import calibrated, evidence_of, found_in, records_of
from scipy.special import softmax

from howsure.statistics.findings.evidence import groups_of_copies

COPIES, CONFLICTS = "duplicate-samples", "conflicting-labels"
BOTH = "samples-in-both-sets"


def doubled(n_copies, *, n_samples=1000, seed=0):
    logits, labels = calibrated(n_samples, seed=seed)
    again = np.arange(n_copies)
    return np.concatenate([logits, logits[again]]), np.concatenate([labels, labels[again]])


@pytest.mark.parametrize(("n_copies", "level"), [(1000, "warning"), (10, "notice"), (3, None)])
@pytest.mark.parametrize("source", ["inputs", "logits"])
def test_copies_are_counted(n_copies, level, source):
    logits, labels = doubled(n_copies)
    found = found_in(logits, labels, source=source)
    assert (found[COPIES].level if COPIES in found else None) == level
    assert CONFLICTS not in found
    if level:
        n = 1000 + n_copies
        figures = {"copies": n_copies, "samples": n, "share": n_copies / n}
        assert found[COPIES].figures == figures


def test_copies_whose_answers_differ_in_the_last_digits():
    logits, labels = doubled(100)
    inputs = logits.copy()
    logits[1000:] *= 1 + 1e-7
    assert found_in(logits, labels, inputs=inputs)[COPIES].figures["copies"] == 100


def test_one_key_by_chance_is_no_copy():
    logits, labels = calibrated(1000, seed=1)
    records = records_of(logits, labels)
    records.tie_key[:] %= 50
    assert len(np.unique(groups_of_copies(records))) == records.n_samples


def test_a_key_alone_tells_apart():
    """Inputs that the model cannot tell from one another are no copies."""
    _, labels = calibrated(400, seed=2)
    inputs = np.random.default_rng(3).normal(size=(400, 5))
    found = found_in(np.tile([2.0, 1.0, 0.5], (400, 1)), labels % 3, inputs=inputs)
    assert not found.keys() & {COPIES, CONFLICTS}


def test_copies_with_other_labels():
    logits, labels = doubled(100, seed=4)
    labels[1000:1030] = (labels[1000:1030] + 1) % 10
    found = found_in(logits, labels)
    figures = {"conflicting": 60, "groups": 30, "samples": 1100, "share": 60 / 1100}
    assert found[CONFLICTS].figures == figures
    assert found[CONFLICTS].level == "warning"


def test_a_single_conflict_is_worth_a_notice():
    logits, labels = doubled(1, seed=5)
    labels[1000] = (labels[1000] + 1) % 10
    found = found_in(logits, labels)
    assert found[CONFLICTS].level == "notice"
    assert COPIES not in found


def test_outputs_that_are_rounded_are_no_copies():
    logits, labels = calibrated(2000, n_classes=3, seed=6)
    rounded = np.round(softmax(logits, axis=1), 1)
    rounded /= rounded.sum(axis=1, keepdims=True)
    found = found_in(rounded, labels, source="probabilities", probabilities=True)
    assert not found.keys() & {COPIES, CONFLICTS}
    pairs = np.round(calibrated(2000, n_classes=2, seed=7)[0])
    assert not found_in(pairs, labels % 2, source="logits").keys() & {COPIES, CONFLICTS}


def test_groups_do_not_depend_on_the_order_of_the_samples():
    logits, labels = doubled(50, seed=8)
    order = np.random.default_rng(9).permutation(len(labels))
    found = found_in(logits[order], labels[order])[COPIES]
    assert found == found_in(logits, labels)[COPIES]


def test_votes_without_any_doubt_are_grouped_by_their_key():
    votes = np.eye(4)[np.arange(40) % 4]
    evidence = evidence_of(votes, np.arange(40) % 4, probabilities=True)
    assert evidence.records.n_samples - len(np.unique(groups_of_copies(evidence.records))) == 36


@pytest.mark.parametrize("times", [2, 3, 10])
def test_a_repeated_set_of_probabilities_is_found(times):
    logits, labels = calibrated(300, seed=5)
    probabilities = np.tile(softmax(logits, axis=1), (times, 1))
    found = found_in(
        probabilities, np.tile(labels, times), probabilities=True, source="probabilities"
    )
    figures = found[COPIES].figures
    assert (found[COPIES].level, figures["times"], figures["copies"]) == (
        "warning",
        times,
        300 * (times - 1),
    )


@pytest.mark.parametrize("seed", range(20))
def test_votes_that_are_often_equal_are_not_a_repeated_set(seed):
    rng = np.random.default_rng(seed)
    votes = rng.multinomial(10, [0.6, 0.3, 0.1], size=2000) / 10.0
    labels = rng.integers(0, 3, 2000)
    found = found_in(votes, labels, probabilities=True, source="probabilities")
    assert COPIES not in found


@pytest.mark.parametrize(
    ("shared", "level"), [(500, "warning"), (4, "notice"), (1, None), (0, None)]
)
def test_evaluation_samples_of_the_calibration_set_are_counted(shared, level):
    logits, labels = calibrated(1000, seed=6)
    others, other_labels = calibrated(500, seed=7)
    evaluation = records_of(
        np.concatenate([logits[:shared], others[shared:]]),
        np.concatenate([labels[:shared], other_labels[shared:]]),
    )
    found = found_in(logits, labels, evaluation=evaluation)
    assert (found[BOTH].level if BOTH in found else None) == level
    if level:
        assert found[BOTH].figures == {"copies": shared, "samples": 500, "share": shared / 500}


@pytest.mark.parametrize("same", [True, False])
def test_probabilities_that_are_given_as_evaluation_again(same):
    logits, labels = calibrated(500, seed=8)
    others, other_labels = (logits, labels) if same else calibrated(500, seed=9)
    rng = np.random.default_rng(0)
    order = rng.permutation(500)
    evaluation = records_of(
        np.log(softmax(others, axis=1))[order], other_labels[order], logits=False
    )
    given = {"probabilities": True, "source": "probabilities", "evaluation": evaluation}
    assert (BOTH in found_in(softmax(logits, axis=1), labels, **given)) is same
