"""Two sets that cannot be of one population."""

import numpy as np
import pytest
from finding_evidence import calibrated, found_in, records_of

CODE = "accuracy-differs"


def spoilt(labels, share, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(labels)) < share, (labels + 1) % 10, labels)


@pytest.mark.parametrize("spoil", ["calibration", "evaluation"])
def test_a_set_with_wrong_labels(spoil):
    logits, labels = calibrated(2000, seed=1, spread=8.0)
    halves = {"calibration": labels[:1000], "evaluation": labels[1000:]}
    halves[spoil] = spoilt(halves[spoil], 0.15)
    evaluation = records_of(logits[1000:], halves["evaluation"])
    finding = found_in(logits[:1000], halves["calibration"], evaluation=evaluation)[CODE]
    assert finding.level == "warning"
    figures = finding.figures
    assert figures["samples"] == figures["evaluation_samples"] == 1000
    lower = "accuracy" if spoil == "calibration" else "evaluation_accuracy"
    assert figures[lower] == min(figures["accuracy"], figures["evaluation_accuracy"])


def test_a_difference_that_is_certain_and_small():
    logits, labels = calibrated(60_000, seed=2, n_classes=3, spread=8.0)
    labels = np.where(np.arange(60_000) % 50 == 0, (labels + 1) % 3, labels)
    clean = np.flatnonzero(np.arange(60_000) % 50 != 0)[:30_000]
    evaluation = records_of(logits[clean], labels[clean])
    assert CODE not in found_in(logits, labels, evaluation=evaluation)


def test_a_difference_that_may_be_chance():
    logits, labels = calibrated(60, seed=3)
    evaluation = records_of(logits[30:], spoilt(labels[30:], 0.2))
    assert CODE not in found_in(logits[:30], labels[:30], evaluation=evaluation)
