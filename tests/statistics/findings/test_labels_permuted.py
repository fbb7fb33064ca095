"""Labels that name the classes in another order, and many classes that chance could match."""

import numpy as np
import pytest
from finding_evidence import calibrated, found_in

from howsure.statistics.findings.labels import MOST_CLASSES

CODE = "labels-permuted"


@pytest.mark.parametrize(("n_classes", "n_samples"), [(3, 200), (10, 150), (200, 4000)])
def test_another_order_is_found(n_classes, n_samples):
    logits, labels = calibrated(n_samples, n_classes=n_classes, seed=1, spread=6.0)
    order = np.random.default_rng(2).permutation(n_classes)
    if n_classes == 3:
        order = np.array([1, 0, 2])
    found = found_in(logits, order[labels])
    figures = found[CODE].figures
    assert found[CODE].level == "warning"
    assert figures["matched_accuracy"] > figures["accuracy"] + 0.4
    assert figures["classes_renamed"] <= np.count_nonzero(order != np.arange(n_classes))
    assert 0.3 * n_samples < figures["samples"] < 0.7 * n_samples


def test_two_of_ten_that_are_swapped():
    logits, labels = calibrated(400, seed=3, spread=8.0)
    swapped = np.array([1, 0, *range(2, 10)])[labels]
    figures = found_in(logits, swapped)[CODE].figures
    assert figures["classes_renamed"] == 2


@pytest.mark.parametrize("n_samples", [20, 500, 2000])
def test_a_matching_by_chance_wins_nothing(n_samples):
    """With as many classes as samples some matching is right about nearly all of them."""
    logits, _ = calibrated(n_samples, n_classes=500, seed=4)
    labels = np.random.default_rng(5).integers(0, 500, n_samples)
    assert CODE not in found_in(logits, labels)


def test_more_classes_than_are_matched():
    rng = np.random.default_rng(6)
    labels = rng.integers(0, MOST_CLASSES + 1, 300)
    logits = np.zeros((300, MOST_CLASSES + 1))
    logits[np.arange(300), rng.permutation(MOST_CLASSES + 1)[labels]] = 9.0
    assert CODE not in found_in(logits, labels)
