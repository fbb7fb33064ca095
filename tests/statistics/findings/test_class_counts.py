"""Classes without a label or never predicted, and too few samples for the bins."""

import numpy as np
import pytest
from sample_strategies import calibrated, found_in

SEEN, PREDICTED = "classes-not-seen", "classes-not-predicted"


def test_classes_without_a_label():
    logits, labels = calibrated(600, seed=1)
    kept = ~np.isin(labels, [3, 7])
    finding = found_in(logits[kept], labels[kept])[SEEN]
    assert finding.level == "notice"
    assert finding.figures == {"missing": 2, "classes": 10, "samples": kept.sum()}
    assert ": 3, 7." in finding.message


@pytest.mark.parametrize("n_classes", [2, 10])
def test_labels_of_one_class_are_worth_a_warning(n_classes):
    logits, labels = calibrated(2000, n_classes=n_classes, seed=1)
    kept = labels == 1
    finding = found_in(logits[kept], labels[kept])[SEEN]
    assert finding.level == "warning"
    assert f"All {kept.sum():,} samples have the same label, 1." in finding.message


@pytest.mark.parametrize(("n_samples", "found"), [(20, False), (200, True)])
def test_one_class_in_a_small_set_is_left_out_by_chance(n_samples, found):
    logits, labels = calibrated(4 * n_samples, seed=2)
    kept = np.flatnonzero(labels != 4)[:n_samples]
    assert (SEEN in found_in(logits[kept], labels[kept])) == found


def test_all_labels_are_judged_by_the_first_samples():
    logits, labels = calibrated(3000, seed=3)
    order = np.argsort(labels, kind="stable")
    found = found_in(logits[order], labels[order], n_first=256)
    assert SEEN not in found
    assert PREDICTED not in found


def test_a_class_that_is_never_named():
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


def test_a_model_that_names_two_of_ten_is_worth_a_warning():
    logits, labels = calibrated(2000, seed=5)
    logits[:, 2:] = -30.0
    assert found_in(logits, labels)[PREDICTED].level == "warning"


def test_a_weak_model_of_many_classes_leaves_some_out():
    logits, labels = calibrated(2000, n_classes=1000, seed=6)
    assert len(np.unique(logits.argmax(axis=1))) < 900
    assert not found_in(logits, labels)


FEW = "few-samples-for-bins"


@pytest.mark.parametrize(
    ("n_samples", "bins", "said"),
    [
        (48, "auto", "There is only one bin for 48 calibration samples"),
        (100, 5, "5 bins share 100 calibration samples, about 20 per bin"),
        (1, "auto", "There is only one bin for 1 calibration sample: too few"),
    ],
)
def test_too_few_samples_for_the_bins(n_samples, bins, said):
    logits, labels = calibrated(n_samples, seed=1)
    finding = found_in(logits, labels, bins=bins)[FEW]
    assert said in finding.message
    assert finding.level == "warning"
    assert finding.figures["least_samples"] == (125 if bins == 5 else 50)


@pytest.mark.parametrize(("n_samples", "bins"), [(50, "auto"), (100, 4), (20, 1)])
def test_enough_samples_for_the_bins(n_samples, bins):
    logits, labels = calibrated(n_samples, seed=2)
    assert FEW not in found_in(logits, labels, bins=bins)


def test_bins_are_judged_by_the_whole_set_and_not_its_first_samples():
    logits, labels = calibrated(600, seed=3)
    assert FEW not in found_in(logits, labels, bins=20, n_first=256)
