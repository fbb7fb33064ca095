"""A model that guesses is found; one that is weak, or judged by few samples, is not."""

import numpy as np
import pytest
from finding_evidence import calibrated, found_in

CODE = "accuracy-near-chance"


def guesses(n_samples, n_classes, *, seed=0, spread=3.0):
    logits, _ = calibrated(n_samples, n_classes=n_classes, seed=seed, spread=spread)
    return logits, np.random.default_rng(seed + 1).integers(0, n_classes, n_samples)


@pytest.mark.parametrize(
    ("n_classes", "n_samples"), [(2, 100), (10, 40), (10, 2000), (1000, 40), (1000, 2000)]
)
def test_labels_of_other_rows_are_found(n_classes, n_samples):
    logits, labels = guesses(n_samples, n_classes)
    finding = found_in(logits, labels)[CODE]
    assert finding.level == "warning"
    assert finding.figures == {
        "accuracy": np.mean(logits.argmax(axis=1) == labels),
        "samples": n_samples,
        "chance": 1 / n_classes,
    }
    assert f"{1 / n_classes:.1%}" in finding.message


def test_a_model_that_knows_that_it_guesses_takes_500_samples():
    for n_samples, found in ((400, False), (500, True)):
        logits, labels = guesses(n_samples, 10, seed=4, spread=0.01)
        assert (CODE in found_in(logits, labels)) == found


def test_always_naming_the_most_frequent_class_is_worth_a_notice():
    labels = (np.arange(1000) % 20 == 0).astype(np.int64)
    logits = np.column_stack([np.full(1000, 3.0), np.random.default_rng(0).normal(size=1000) / 9])
    finding = found_in(logits, labels)[CODE]
    assert finding.level == "notice"
    assert finding.figures == {"accuracy": 0.95, "samples": 1000, "chance": 0.95}


def test_twenty_samples_of_an_unsure_model_prove_nothing():
    logits, labels = guesses(20, 2, spread=0.5)
    assert CODE not in found_in(logits, labels)
