"""Classes without a label or never predicted, and too few samples for the bins."""

import numpy as np
import pytest
from sample_strategies import calibrated, found_in

SEEN, PREDICTED, FEW = "classes-not-seen", "classes-not-predicted", "few-samples-for-bins"


@pytest.mark.parametrize(("n_samples", "is_found"), [(20, False), (200, True)])
def test_one_class_in_a_small_set_is_left_out_by_chance(n_samples, is_found):
    logits, labels = calibrated(4 * n_samples, seed=2)
    kept = np.flatnonzero(labels != 4)[:n_samples]
    assert (SEEN in found_in(logits[kept], labels[kept])) == is_found


def test_all_labels_are_judged_by_the_first_samples():
    logits, labels = calibrated(3000, seed=3)
    order = np.argsort(labels, kind="stable")
    assert not found_in(logits[order], labels[order], n_first=256).keys() & {SEEN, PREDICTED}


@pytest.mark.parametrize(("n_never", "level"), [(1, "notice"), (8, "warning")])
def test_classes_that_are_never_named(n_never, level):
    logits, labels = calibrated(2000, seed=4)
    logits[:, :n_never] = -30.0
    finding = found_in(logits, labels)[PREDICTED]
    assert (finding.level, finding.figures["never_predicted"]) == (level, n_never)
    assert finding.figures["samples_of_them"] == np.count_nonzero(labels < n_never)


def test_a_weak_model_of_many_classes_leaves_some_out():
    logits, labels = calibrated(2000, n_classes=1000, seed=6)
    assert len(np.unique(logits.argmax(axis=1))) < 900
    assert not found_in(logits, labels)


@pytest.mark.parametrize(("n_samples", "bins", "is_few"), [
    (49, "auto", True), (50, "auto", False), (99, 4, True), (100, 4, False), (20, 1, False),
])  # fmt: skip
def test_too_few_samples_for_the_bins(n_samples, bins, is_few):
    assert (FEW in found_in(*calibrated(n_samples, seed=1), bins=bins)) == is_few


def test_bins_are_judged_by_the_whole_set_and_not_its_first_samples():
    assert FEW not in found_in(*calibrated(600, seed=3), bins=20, n_first=256)
