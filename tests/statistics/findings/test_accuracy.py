"""Findings about accuracy: near chance, or different between two sets."""

import numpy as np
import pytest
from sample_strategies import calibrated, found_in, records_of

NEAR_CHANCE, DIFFERS = "accuracy-near-chance", "accuracy-differs"


def guesses(n_samples, n_classes, *, seed=0, spread=3.0):
    logits, _ = calibrated(n_samples, n_classes=n_classes, seed=seed, spread=spread)
    return logits, np.random.default_rng(seed + 1).integers(0, n_classes, n_samples)


@pytest.mark.parametrize(
    ("n_classes", "n_samples"), [(2, 100), (10, 40), (10, 2000), (1000, 40), (1000, 2000)]
)
def test_labels_of_other_rows_are_found(n_classes, n_samples):
    logits, labels = guesses(n_samples, n_classes)
    finding = found_in(logits, labels)[NEAR_CHANCE]
    accuracy = np.mean(logits.argmax(axis=1) == labels)
    figures = {"accuracy": accuracy, "samples": n_samples, "chance": 1 / n_classes}
    assert (finding.level, finding.figures) == ("warning", figures)


@pytest.mark.parametrize(
    ("n_samples", "n_classes", "spread", "is_found"),
    [(400, 10, 0.01, False), (500, 10, 0.01, True), (20, 2, 0.5, False)],
)
def test_a_model_that_knows_that_it_guesses_takes_500_samples(
    n_samples, n_classes, spread, is_found
):
    logits, labels = guesses(n_samples, n_classes, seed=4, spread=spread)
    assert (NEAR_CHANCE in found_in(logits, labels)) == is_found


def test_always_naming_the_most_frequent_class_is_worth_a_notice():
    labels = (np.arange(1000) % 20 == 0).astype(np.int64)
    logits = np.column_stack([np.full(1000, 3.0), np.random.default_rng(0).normal(size=1000) / 9])
    finding = found_in(logits, labels)[NEAR_CHANCE]
    figures = {"accuracy": 0.95, "samples": 1000, "chance": 0.95}
    assert (finding.level, finding.figures) == ("notice", figures)


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_model_of_rare_events_is_known_by_where_it_is_certain(shuffled):
    """Its accuracy is that of the most frequent class; shuffled labels tell it nothing."""
    rng = np.random.default_rng(3)
    labels = (rng.random(1500) < 0.15).astype(np.int64)
    score = np.where(labels == 1, rng.normal(-1.6, 0.8, 1500), rng.normal(-2.4, 0.8, 1500))
    logits = np.column_stack([np.zeros(1500), score])
    sent = rng.permutation(labels) if shuffled else labels
    found = found_in(logits, sent)
    assert np.mean(logits.argmax(axis=1) == sent) < np.mean(sent == 0) + 0.01
    assert [finding.level for finding in found.values()] == ["notice"] * shuffled
    assert set(found) <= {NEAR_CHANCE}


@pytest.mark.parametrize("seed", range(3))
def test_less_than_the_most_frequent_class_needs_few_samples(seed):
    """As many as a dry run examines, with labels of other rows."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(4, 256, p=[0.55, 0.2, 0.15, 0.1])
    logits = rng.normal(size=(256, 4)) + 1.6 * np.eye(4)[labels]
    assert NEAR_CHANCE in found_in(logits, rng.permutation(labels))
    assert NEAR_CHANCE not in found_in(logits, labels)


def spoilt(labels, share):
    rng = np.random.default_rng(0)
    return np.where(rng.random(len(labels)) < share, (labels + 1) % 10, labels)


@pytest.mark.parametrize("lower", ["accuracy", "evaluation_accuracy"])
def test_a_set_with_wrong_labels(lower):
    logits, labels = calibrated(2000, seed=1, spread=8.0)
    halves = [labels[:1000], labels[1000:]]
    place = int(lower == "evaluation_accuracy")
    halves[place] = spoilt(halves[place], 0.15)
    evaluation = records_of(logits[1000:], halves[1])
    finding = found_in(logits[:1000], halves[0], evaluation=evaluation)[DIFFERS]
    figures = finding.figures
    assert (finding.level, figures["samples"]) == ("warning", figures["evaluation_samples"])
    assert figures[lower] == min(figures["accuracy"], figures["evaluation_accuracy"])


def test_a_set_of_mostly_hard_samples_does_not_differ_by_weight():
    """Hard samples are drawn five times as often as in the evaluation set, and weigh a fifth."""
    logits, labels = calibrated(8000, seed=5, n_classes=3, spread=3.0)
    evaluation = records_of(logits[4000:], labels[4000:])
    sizes = np.sort(logits[:4000], axis=1)
    is_hard = sizes[:, 2] - sizes[:, 1] < 2.0
    kept = is_hard | (np.random.default_rng(0).random(4000) < 0.2)
    sent = logits[:4000][kept], labels[:4000][kept]
    weight = np.where(is_hard, 0.2, 1.0)[kept]
    assert DIFFERS in found_in(*sent, evaluation=evaluation)
    assert DIFFERS not in found_in(*sent, evaluation=evaluation, design={"weight": weight})


def test_copies_in_one_group_do_not_make_a_difference_certain():
    logits, labels = calibrated(700, seed=20, n_classes=3, spread=2.0)
    copies = np.repeat(np.arange(100), 8)
    evaluation = records_of(logits[100:], labels[100:])
    for design, is_found in (({}, True), ({"group": copies}, False)):
        found = found_in(logits[copies], labels[copies], evaluation=evaluation, design=design)
        assert (DIFFERS in found) == is_found


def test_differences_that_are_small_or_may_be_chance():
    logits, labels = calibrated(60_000, seed=2, n_classes=3, spread=8.0)
    labels = np.where(np.arange(60_000) % 50 == 0, (labels + 1) % 3, labels)
    clean = np.flatnonzero(np.arange(60_000) % 50 != 0)[:30_000]
    evaluation = records_of(logits[clean], labels[clean])
    assert DIFFERS not in found_in(logits, labels, evaluation=evaluation)
    logits, labels = calibrated(60, seed=3)
    evaluation = records_of(logits[30:], spoilt(labels[30:], 0.2))
    assert DIFFERS not in found_in(logits[:30], labels[:30], evaluation=evaluation)


@pytest.mark.parametrize(
    ("n_samples", "wrong", "level"), [(100, 0, "notice"), (99, 0, None), (500, 1, None)]
)
def test_a_set_without_errors_is_noticed(n_samples, wrong, level):
    logits, _ = calibrated(n_samples, seed=3)
    labels = logits.argmax(axis=1)
    labels[:wrong] = (labels[:wrong] + 1) % 10
    finding = found_in(logits, labels).get("no-errors")
    assert (finding and finding.level) == level
