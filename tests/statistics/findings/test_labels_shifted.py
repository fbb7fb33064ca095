"""Labels that are all off by one number, around the last class or not."""

import numpy as np
import pytest
from finding_evidence import calibrated, found_in

CODE = "labels-shifted"


@pytest.mark.parametrize("added", [1, -1, 3, 5])
@pytest.mark.parametrize("n_samples", [60, 2000])
def test_labels_around_the_last_class(added, n_samples):
    logits, labels = calibrated(n_samples, seed=2)
    found = found_in(logits, (labels + added) % 10)
    figures = found[CODE].figures
    assert figures["offset"] % 10 == -added % 10
    assert figures["shifted_accuracy"] == np.mean(logits.argmax(axis=1) == labels)
    assert found[CODE].level == "warning"
    assert "labels-permuted" not in found


@pytest.mark.parametrize("added", [1, 24])
def test_labels_of_a_model_with_further_classes(added):
    """A model that has a class for the background, say, before those of the labels."""
    logits, labels = calibrated(1500, n_classes=76, seed=3)
    wide = np.concatenate([np.full((1500, added), -20.0), logits], axis=1)
    figures = found_in(wide, labels)[CODE].figures
    assert figures["offset"] == added
    assert figures["accuracy"] < 0.1 < figures["shifted_accuracy"]


def test_two_classes_that_are_swapped():
    logits, labels = calibrated(300, n_classes=2, seed=4)
    found = found_in(logits, 1 - labels)
    assert abs(found[CODE].figures["offset"]) == 1


def test_a_thousand_classes():
    logits, labels = calibrated(400, n_classes=1000, seed=5, spread=5.0)
    assert found_in(logits, (labels + 1) % 1000)[CODE].figures["offset"] == -1


def test_neighbours_that_are_often_confused_are_not_shifted():
    """Ages, say: the class after the label is as likely as the label."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 50, 3000)
    near = np.clip(labels + rng.choice([-1, 0, 0, 1, 1], 3000), 0, 49)
    logits = rng.normal(size=(3000, 50))
    logits[np.arange(3000), near] += 6.0
    assert not found_in(logits, labels)
