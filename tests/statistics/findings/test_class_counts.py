"""Classes without a label or never predicted, and too few samples for the bins."""

import numpy as np
import pytest
from sample_strategies import calibrated, found_in

SEEN, PREDICTED, FEW = "classes-not-seen", "classes-not-predicted", "few-samples-for-bins"


def test_classes_without_a_label():
    logits, labels = calibrated(600, seed=1)
    kept = ~np.isin(labels, [3, 7])
    finding = found_in(logits[kept], labels[kept])[SEEN]
    assert finding.level == "notice"
    assert finding.figures == {"missing": 2, "classes": 10, "samples": kept.sum()}
    assert "3, 7" in finding.message


@pytest.mark.parametrize("n_classes", [2, 10])
def test_labels_of_one_class_are_worth_a_warning(n_classes):
    logits, labels = calibrated(2000, n_classes=n_classes, seed=1)
    kept = labels == 1
    assert found_in(logits[kept], labels[kept])[SEEN].level == "warning"


@pytest.mark.parametrize(("n_samples", "is_found"), [(20, False), (200, True)])
def test_one_class_in_a_small_set_is_left_out_by_chance(n_samples, is_found):
    logits, labels = calibrated(4 * n_samples, seed=2)
    kept = np.flatnonzero(labels != 4)[:n_samples]
    assert (SEEN in found_in(logits[kept], labels[kept])) == is_found


def test_all_labels_are_judged_by_the_first_samples():
    logits, labels = calibrated(3000, seed=3)
    order = np.argsort(labels, kind="stable")
    assert not found_in(logits[order], labels[order], n_first=256).keys() & {SEEN, PREDICTED}


def test_classes_that_are_never_named():
    """One of ten is worth a notice; eight are worth a warning."""
    logits, labels = calibrated(2000, seed=4)
    logits[:, 6] = -30.0
    finding = found_in(logits, labels)[PREDICTED]
    assert finding.level == "notice"
    assert finding.figures == {
        "never_predicted": 1,
        "labelled_classes": 10,
        "samples_of_them": np.count_nonzero(labels == 6),
        "samples": 2000,
    }
    logits[:, 2:] = -30.0
    assert found_in(logits, labels)[PREDICTED].level == "warning"


def test_a_weak_model_of_many_classes_leaves_some_out():
    logits, labels = calibrated(2000, n_classes=1000, seed=6)
    assert len(np.unique(logits.argmax(axis=1))) < 900
    assert not found_in(logits, labels)


@pytest.mark.parametrize(("n_samples", "bins", "least"), [
    (48, "auto", 50), (100, 5, 125), (1, "auto", 50),
    (50, "auto", None), (100, 4, None), (20, 1, None),
])  # fmt: skip
def test_too_few_samples_for_the_bins(n_samples, bins, least):
    finding = found_in(*calibrated(n_samples, seed=1), bins=bins).get(FEW)
    assert (finding and (finding.level, finding.figures["least_samples"])) == (
        None if least is None else ("warning", least)
    )


def test_bins_are_judged_by_the_whole_set_and_not_its_first_samples():
    assert FEW not in found_in(*calibrated(600, seed=3), bins=20, n_first=256)
