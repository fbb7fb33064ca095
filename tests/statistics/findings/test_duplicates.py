"""Samples that are there more than once, with one label or with several."""

import numpy as np
import pytest
from sample_strategies import calibrated, evidence_of, found_in, records_of
from scipy.special import softmax

from howsure.statistics.findings.evidence import groups_of_copies

COPIES, CONFLICTS = "duplicate-samples", "conflicting-labels"


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
