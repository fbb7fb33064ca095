"""Too few samples for the bins, by the count of the whole set."""

import pytest
from finding_evidence import calibrated, found_in

CODE = "few-samples-for-bins"


@pytest.mark.parametrize(
    ("n_samples", "bins", "said"),
    [
        (48, "auto", "There is only one bin for 48 calibration samples"),
        (100, 5, "5 bins share 100 calibration samples, about 20 per bin"),
        (1, "auto", "There is only one bin for 1 calibration sample,"),
    ],
)
def test_too_few(n_samples, bins, said):
    logits, labels = calibrated(n_samples, seed=1)
    finding = found_in(logits, labels, bins=bins)[CODE]
    assert said in finding.message
    assert finding.level == "warning"
    assert finding.figures["least_samples"] == (125 if bins == 5 else 50)


@pytest.mark.parametrize(("n_samples", "bins"), [(50, "auto"), (100, 4), (20, 1)])
def test_enough(n_samples, bins):
    logits, labels = calibrated(n_samples, seed=2)
    assert CODE not in found_in(logits, labels, bins=bins)


def test_the_whole_set_counts_and_not_its_first_samples():
    logits, labels = calibrated(600, seed=3)
    assert CODE not in found_in(logits, labels, bins=20, n_first=256)
