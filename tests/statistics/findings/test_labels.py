"""Findings about labels: shifted or permuted."""

import numpy as np
import pytest
from remedy_lines import followed
from sample_strategies import calibrated, found_in

from howsure.remedies import remedy_of
from howsure.statistics.findings.labels import MOST_CLASSES

SHIFTED, PERMUTED = "labels-shifted", "labels-permuted"
ABOUT = {"config": {}, "data": {"kind": "logits", "format": "npz"}}


def mended(finding, labels):
    """Return the labels after the Python of the finding's remedy."""
    remedy = remedy_of({"code": finding.code, "figures": finding.figures}, ABOUT)
    return followed(remedy.code, labels=labels)["labels"]


@pytest.mark.parametrize("added", [1, 24])
def test_labels_of_a_model_with_further_classes(added):
    """A model that has a class for the background, say, before those of the labels."""
    logits, labels = calibrated(1500, n_classes=76, seed=3)
    wide = np.concatenate([np.full((1500, added), -20.0), logits], axis=1)
    figures = found_in(wide, labels)[SHIFTED].figures
    assert figures["offset"] == added
    assert figures["accuracy"] < 0.1 < figures["shifted_accuracy"]


@pytest.mark.parametrize(
    ("n_samples", "n_classes", "added"), [(300, 2, 1), (400, 1000, 1), (60, 10, 5), (60, 10, -1)]
)
def test_labels_around_the_last_class(n_samples, n_classes, added):
    logits, labels = calibrated(n_samples, n_classes=n_classes, seed=2, spread=5.0)
    figures = found_in(logits, (labels + added) % n_classes)[SHIFTED].figures
    assert (figures["offset"] + added) % n_classes == 0
    assert figures["shifted_accuracy"] == np.mean(logits.argmax(axis=1) == labels)


def test_neighbours_that_are_often_confused_are_not_shifted():
    """Ages, say: the class after the label is as likely as the label."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 50, 3000)
    near = np.clip(labels + rng.choice([-1, 0, 0, 1, 1], 3000), 0, 49)
    logits = rng.normal(size=(3000, 50))
    logits[np.arange(3000), near] += 6.0
    assert not found_in(logits, labels)


@pytest.mark.parametrize(("n_classes", "n_samples"), [(10, 150), (200, 4000)])
def test_another_order_is_found(n_classes, n_samples):
    logits, labels = calibrated(n_samples, n_classes=n_classes, seed=1, spread=6.0)
    order = np.random.default_rng(2).permutation(n_classes)
    figures = found_in(logits, order[labels])[PERMUTED].figures
    assert figures["matched_accuracy"] > figures["accuracy"] + 0.4
    assert figures["classes_renamed"] <= np.count_nonzero(order != np.arange(n_classes))
    assert 0.3 * n_samples < figures["samples"] < 0.7 * n_samples


@pytest.mark.parametrize("n_samples", [20, 500, 2000])
def test_a_matching_by_chance_wins_nothing(n_samples):
    """With as many classes as samples some matching is right about nearly all of them."""
    logits, _ = calibrated(n_samples, n_classes=500, seed=4)
    labels = np.random.default_rng(5).integers(0, 500, n_samples)
    assert PERMUTED not in found_in(logits, labels)


def test_more_classes_than_are_matched():
    rng = np.random.default_rng(6)
    labels = rng.integers(0, MOST_CLASSES + 1, 300)
    logits = np.zeros((300, MOST_CLASSES + 1))
    logits[np.arange(300), rng.permutation(MOST_CLASSES + 1)[labels]] = 9.0
    assert PERMUTED not in found_in(logits, labels)


@pytest.mark.parametrize(("n_samples", "spread"), [(3000, 1.5), (1000, 6.0)])
def test_the_remedy_makes_the_model_right_again(n_samples, spread):
    """Of any permutation: random ones, shifts, and shifts of all classes but two or more."""
    rng = np.random.default_rng(7)
    n_found = 0
    for seed in range(45):
        n_classes = int(rng.integers(3, 21))
        logits, labels = calibrated(n_samples, n_classes=n_classes, seed=seed, spread=spread)
        order = (np.arange(n_classes) + rng.integers(1, n_classes)) % n_classes
        moved = rng.permutation(n_classes)[: [0, n_classes // 2, n_classes][seed % 3]]
        order[np.sort(moved)] = order[moved]
        sent, predicted = order[labels], logits.argmax(axis=1)
        found = found_in(logits, sent)
        named = found.keys() & {SHIFTED, PERMUTED}
        assert len(named) <= 1
        if seed % 3 == 0:
            assert named == {SHIFTED}
        for code in named:
            n_found += 1
            after = np.mean(mended(found[code], sent) == predicted)
            assert after >= np.mean(labels == predicted) - 0.07
    assert n_found >= 40


def test_a_model_that_names_one_class_is_no_question_of_labels() -> None:
    """Of a binary model with spoilt inputs, the other labels fit the share of that class."""
    rng = np.random.default_rng(0)
    labels = (rng.random(400) < 0.28).astype(np.int64)
    logits = np.column_stack([rng.normal(0, 1, 400), rng.normal(9, 1, 400)])
    assert not {SHIFTED, PERMUTED} & found_in(logits, labels).keys()


def test_inputs_that_make_classes_alike_are_no_matter_of_labels():
    """As signs upside down: most samples of two classes look like each other, some are lost."""
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 8, 2000)
    shown = np.where(labels >= 6, 13 - labels, labels)
    logits = rng.normal(size=(2000, 8)) + 2.2 * np.eye(8)[shown]
    accuracy, mended_accuracy = (np.mean(logits.argmax(axis=1) == own) for own in (labels, shown))
    # They win back a good half of what is lacking.
    assert 0.5 < (mended_accuracy - accuracy) / (0.9 - accuracy) < 0.75
    for known in (None, 0.6, 0.9):
        found = found_in(logits, labels, known_accuracy=known)
        assert (PERMUTED in found) == (known != 0.9)


@pytest.mark.parametrize("order", [[1, 2, 3, 4, 5, 6, 7, 0], [1, 0, 3, 2, 5, 4, 7, 6]])
def test_wrong_labels_beside_a_known_accuracy(order):
    logits, labels = calibrated(1500, n_classes=8, seed=6, spread=6.0)
    known = float(np.mean(logits.argmax(axis=1) == labels))
    found = found_in(logits, np.array(order)[labels], known_accuracy=known + 0.03)
    assert found.keys() & {SHIFTED, PERMUTED}
