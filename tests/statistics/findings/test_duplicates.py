"""Samples that are there more than once, with one label or with several."""

import numpy as np
import pytest
from own_process import peak_of
from sample_strategies import calibrated, evidence_of, found_in, records_of
from scipy.special import softmax

from howsure.statistics.findings.duplicates import samples_in_both_sets
from howsure.statistics.findings.evidence import groups_of_copies

COPIES, CONFLICTS, BOTH = "duplicate-samples", "conflicting-labels", "samples-in-both-sets"
PROBABILITIES = {"source": "probabilities", "probabilities": True}


def doubled(n_copies, *, n_samples=1000, seed=0):
    logits, labels = calibrated(n_samples, seed=seed)
    again = np.arange(n_copies)
    return np.concatenate([logits, logits[again]]), np.concatenate([labels, labels[again]])


def level_of(found, code):
    return found[code].level if code in found else None


COPIED = [(1000, "warning", "inputs"), (10, "notice", "logits"), (3, None, "inputs")]


@pytest.mark.parametrize(("n_copies", "level", "source"), COPIED)
def test_copies_are_counted_in_any_order_whatever_the_last_digits_of_answers(
    n_copies, level, source
):
    logits, labels = doubled(n_copies)
    inputs, order = logits.copy(), np.random.default_rng(9).permutation(len(labels))
    logits[1000:] *= 1 + 1e-7
    found = found_in(logits[order], labels[order], inputs=inputs[order], source=source)
    assert (level_of(found, COPIES), CONFLICTS in found) == (level, False)
    assert level is None or found[COPIES].figures["copies"] == n_copies


def test_one_key_by_chance_is_no_copy_and_a_key_alone_tells_apart():
    logits, labels = calibrated(1000, seed=1)
    records = records_of(logits, labels)
    records.tie_key[:] %= 50
    assert len(np.unique(groups_of_copies(records))) == records.n_samples
    inputs = np.random.default_rng(3).normal(size=(1000, 5))
    same_answers = np.tile([2.0, 1.0, 0.5], (1000, 1))
    found = found_in(same_answers, labels % 3, inputs=inputs)
    assert not found.keys() & {COPIES, CONFLICTS}


CONFLICTING = [(100, 30, "warning"), (1, 1, "notice")]


@pytest.mark.parametrize(("n_copies", "n_conflicts", "level"), CONFLICTING)
def test_copies_with_other_labels(n_copies, n_conflicts, level):
    logits, labels = doubled(n_copies, seed=4)
    changed = slice(1000, 1000 + n_conflicts)
    labels[changed] = (labels[changed] + 1) % 10
    finding = found_in(logits, labels)[CONFLICTS]
    figures = finding.figures["conflicting"], finding.figures["groups"]
    assert (finding.level, *figures) == (level, 2 * n_conflicts, n_conflicts)


def test_outputs_that_are_rounded_are_no_copies():
    logits, labels = calibrated(2000, n_classes=3, seed=6)
    rounded = np.round(softmax(logits, axis=1), 1)
    rounded /= rounded.sum(axis=1, keepdims=True)
    assert not found_in(rounded, labels, **PROBABILITIES).keys() & {COPIES, CONFLICTS}
    pairs = np.round(calibrated(2000, n_classes=2, seed=7)[0])
    assert not found_in(pairs, labels % 2, source="logits").keys() & {COPIES, CONFLICTS}
    for seed in range(10):
        votes = np.random.default_rng(seed).multinomial(10, [0.6, 0.3, 0.1], size=2000) / 10.0
        assert COPIES not in found_in(votes, labels, **PROBABILITIES)


def test_votes_without_any_doubt_are_grouped_by_their_key():
    votes = np.eye(4)[np.arange(40) % 4]
    records = evidence_of(votes, np.arange(40) % 4, probabilities=True).records
    assert records.n_samples - len(np.unique(groups_of_copies(records))) == 36


@pytest.mark.parametrize("times", [2, 3, 10])
def test_a_repeated_set_of_probabilities_is_found(times):
    logits, labels = calibrated(300, seed=5)
    probabilities = np.tile(softmax(logits, axis=1), (times, 1))
    found = found_in(probabilities, np.tile(labels, times), **PROBABILITIES)[COPIES]
    assert found.level == "warning"
    assert (found.figures["times"], found.figures["copies"]) == (times, 300 * (times - 1))


SHARED = [(500, "warning"), (4, "notice"), (1, None), (0, None)]


@pytest.mark.parametrize(("shared", "level"), SHARED)
def test_evaluation_samples_of_the_calibration_set_are_counted(shared, level):
    logits, labels = calibrated(1000, seed=6)
    others, other_labels = calibrated(500, seed=7)
    others[:shared], other_labels[:shared] = logits[:shared], labels[:shared]
    found = found_in(logits, labels, evaluation=records_of(others, other_labels))
    assert level_of(found, BOTH) == level
    assert level is None or found[BOTH].figures["copies"] == shared


@pytest.mark.parametrize("same", [True, False])
def test_probabilities_that_are_given_as_evaluation_again(same):
    logits, labels = calibrated(500, seed=8)
    others, other_labels = (logits, labels) if same else calibrated(500, seed=9)
    order = np.random.default_rng(0).permutation(500)
    log_p = np.log(softmax(others, axis=1))[order]
    evaluation = records_of(log_p, other_labels[order], logits=False)
    found = found_in(softmax(logits, axis=1), labels, evaluation=evaluation, **PROBABILITIES)
    assert (BOTH in found) is same


@pytest.mark.process
def test_two_sets_are_compared_by_a_few_numbers_of_each_sample():
    evidence = evidence_of(*(one := calibrated(20_000, seed=6)), evaluation=records_of(*one))
    n_bytes = sum(array.nbytes for array in evidence.records.to_arrays().values())
    assert peak_of(lambda: samples_in_both_sets(evidence)) < n_bytes
