"""Findings about accuracy: near chance, different between two sets, or without errors."""

import numpy as np
import pytest
from sample_strategies import calibrated, found_in, records_of

NEAR_CHANCE, DIFFERS = "accuracy-near-chance", "accuracy-differs"


def guesses(n_samples, n_classes, *, seed=0, spread=3.0):
    logits, _ = calibrated(n_samples, n_classes=n_classes, seed=seed, spread=spread)
    return logits, np.random.default_rng(seed + 1).integers(0, n_classes, n_samples)


def rare_events():
    """Accuracy is that of the most frequent class, but the model knows where it is certain."""
    rng = np.random.default_rng(3)
    labels = (rng.random(1500) < 0.15).astype(np.int64)
    score = np.where(labels == 1, rng.normal(-1.6, 0.8, 1500), rng.normal(-2.4, 0.8, 1500))
    return np.column_stack([np.zeros(1500), score]), labels


def uneven():
    """As many samples as a dry run examines; shuffled, less than the most frequent class."""
    rng = np.random.default_rng(1)
    labels = rng.choice(4, 256, p=[0.55, 0.2, 0.15, 0.1])
    return rng.normal(size=(256, 4)) + 1.6 * np.eye(4)[labels], labels


SETS = {
    **{
        f"other rows, {size}": (guesses(*size), "warning")
        for size in ((100, 2), (40, 10), (2000, 10), (40, 1000))
    },
    # A model that knows that it guesses takes 500 samples.
    "unsure, 400": (guesses(400, 10, seed=4, spread=0.01), None),
    "unsure, 500": (guesses(500, 10, seed=4, spread=0.01), "warning"),
    "unsure, 20": (guesses(20, 2, seed=4, spread=0.5), None),
    "rare events": (rare_events(), None),
    "uneven": (uneven(), None),
}


@pytest.mark.parametrize(("outputs", "level"), SETS.values(), ids=SETS)
def test_near_chance(outputs, level):
    finding = found_in(*outputs).get(NEAR_CHANCE)
    assert (finding and finding.level) == level


@pytest.mark.parametrize("drawn", [rare_events, uneven])
def test_shuffled_labels_are_near_chance_however_frequent_a_class_is(drawn):
    logits, labels = drawn()
    shuffled = np.random.default_rng(3).permutation(labels)
    finding = found_in(logits, shuffled)[NEAR_CHANCE]
    accuracy = np.mean(logits.argmax(axis=1) == shuffled)
    assert (finding.level, finding.figures["accuracy"]) == ("notice", accuracy)


def differs(logits, labels, n_first, **options):
    """Whether the first samples differ from the others, which are the evaluation set."""
    evaluation = records_of(logits[n_first:], labels[n_first:])
    return DIFFERS in found_in(logits[:n_first], labels[:n_first], evaluation=evaluation, **options)


def test_a_set_of_mostly_hard_samples_does_not_differ_by_weight():
    """Hard samples are drawn five times as often as in the evaluation set, and weigh a fifth."""
    logits, labels = calibrated(8000, seed=5, n_classes=3, spread=3.0)
    sizes = np.sort(logits, axis=1)
    is_hard = sizes[:, 2] - sizes[:, 1] < 2.0
    kept = is_hard | (np.random.default_rng(0).random(8000) < 0.2) | (np.arange(8000) >= 4000)
    weight = np.where(is_hard, 0.2, 1.0)[:4000][kept[:4000]]
    for design, is_found in (({}, True), ({"weight": weight}, False)):
        assert differs(logits[kept], labels[kept], len(weight), design=design) == is_found


def test_copies_in_one_group_do_not_make_a_difference_certain():
    logits, labels = calibrated(700, seed=20, n_classes=3, spread=2.0)
    copies = np.repeat(np.arange(100), 8)
    rows = np.append(copies, np.arange(100, 700))
    for design, is_found in (({}, True), ({"group": copies}, False)):
        assert differs(logits[rows], labels[rows], 800, design=design) == is_found


def test_differences_that_are_small_or_may_be_chance():
    """Two in a hundred of 60,000; six in thirty."""
    logits, labels = calibrated(90_000, seed=2, n_classes=3, spread=8.0)
    is_wrong = (np.arange(90_000) < 60_000) & (np.arange(90_000) % 50 == 0)
    assert not differs(logits, np.where(is_wrong, (labels + 1) % 3, labels), 60_000)
    logits, labels = calibrated(60, seed=3)
    labels[30::5] = (labels[30::5] + 1) % 10
    assert not differs(logits, labels, 30)


@pytest.mark.parametrize(
    ("n_samples", "wrong", "level"), [(100, 0, "notice"), (99, 0, None), (500, 1, None)]
)
def test_a_set_without_errors_is_noticed(n_samples, wrong, level):
    logits, _ = calibrated(n_samples, seed=3)
    labels = logits.argmax(axis=1)
    labels[:wrong] = (labels[:wrong] + 1) % 10
    finding = found_in(logits, labels).get("no-errors")
    assert (finding and finding.level) == level
