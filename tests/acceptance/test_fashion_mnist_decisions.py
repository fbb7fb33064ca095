"""Decisions on a real network: what to accept, which labels to doubt, which sets are shifted.

The smaller equivalents on simulated samples are
tests/statistics/selection/test_selective_simulated.py, test_error_samples.py and
test_further_set.py.
"""

import fashion_mnist
import numpy as np
import pytest
from fashion_mnist import REQUIRES_DATA, images_and_labels, logits_of
from scipy.ndimage import rotate, shift

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.error_samples import mislabelled_candidates
from howsure.statistics.measures import column
from howsure.statistics.ranking import ranking_of
from howsure.statistics.records.records import Records, concatenate
from howsure.statistics.selective import SelectiveTarget, fit_selective
from howsure.statistics.shift.evaluation import evaluate_set
from howsure.statistics.shift.population import population_shift

pytestmark = REQUIRES_DATA
SERVED = {1: "neg_log_pmax", 5: "neg_log_topk_mass"}
MEASURES = ("entropy", "neg_log_pmax", "margin")
ANGLES, PIXELS = (15, 30, 45, 60), (2, 4)


def records_of(logits: np.ndarray, labels: np.ndarray) -> Records:
    return fashion_mnist.records_of(logits, labels, of=logits)


def with_flips(labels: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of which a share was replaced by another class, and where."""
    rng = np.random.default_rng(seed)
    flipped = rng.choice(len(labels), round(share * len(labels)), replace=False)
    labels = labels.copy()
    labels[flipped] = (labels[flipped] + rng.integers(1, 10, len(flipped))) % 10
    return labels, flipped


@pytest.fixture(scope="module")
def halves() -> dict:
    found = {}
    for half in ("calibration", "evaluation"):
        images, labels = images_and_labels(half)
        found[half] = (logits_of("model", images), labels)
    return found


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("max_risk", "least"), [(0.05, 0.88), (0.01, 0.60)])
def test_selective_prediction_is_useful(halves, measure, max_risk, least) -> None:
    records = records_of(*halves["evaluation"])
    target = SelectiveTarget(max_risk, 0.05)

    found = fit_selective(ranking_of(records.uncertainty[measure], records.hits(1)), target)
    assert found.coverage >= least
    assert found.n_errors / found.n_accepted <= max_risk


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("max_risk", [0.05, 0.01])
def test_selective_threshold_holds_on_the_other_half(halves, measure, max_risk) -> None:
    ours, theirs = (records_of(*halves[half]) for half in ("calibration", "evaluation"))
    target = SelectiveTarget(max_risk, 0.05)
    threshold = fit_selective(ranking_of(ours.uncertainty[measure], ours.hits(1)), target).threshold

    accepted = theirs.uncertainty[measure] <= np.float32(threshold)
    assert (~theirs.hits(1)[accepted]).mean() <= max_risk


@pytest.mark.parametrize("seed", range(10))
def test_selective_prediction_survives_wrong_labels(halves, seed) -> None:
    logits, labels = halves["evaluation"]
    records = records_of(logits, with_flips(labels, 0.004, seed)[0])

    found = fit_selective(
        ranking_of(records.uncertainty["neg_log_pmax"], records.hits(1)),
        SelectiveTarget(0.05, 0.05),
    )
    assert found.coverage >= 0.85


@pytest.mark.parametrize("measure", MEASURES)
def test_flipped_labels_are_among_the_first_candidates(halves, measure) -> None:
    logits, labels = halves["evaluation"]
    shares = []
    for seed in range(10):
        told, flipped = with_flips(labels, 0.01, seed)
        records = records_of(logits, told)
        table = fit_bin_table(records.uncertainty[measure], records.hits(1), n_bins=15)
        found = mislabelled_candidates(records, 1, measure, table, n=50)
        assert len(found) == 50
        shares.append(np.isin([candidate.index for candidate in found], flipped).mean())

    assert np.mean(shares) >= 0.55


def tables_of(records: Records) -> dict:
    return {
        k: {
            name: fit_bin_table(records.uncertainty[column(name, k)], records.hits(k), n_bins=15)
            for name in {measure, "entropy"}
        }
        for k, measure in SERVED.items()
    }


def judged_by(calibration: Records, further: Records, *, labelled: bool, seed: int = 0):
    return evaluate_set(
        tables_of(calibration),
        calibration,
        further,
        served=SERVED,
        labelled=labelled,
        n_classes=10,
        seed=seed,
    )


@pytest.fixture(scope="module")
def moved() -> dict:
    """Records of the evaluation half, rotated and shifted, by name."""
    images, labels = images_and_labels("evaluation")
    found = {}
    for angle in ANGLES:
        turned = rotate(images, angle, axes=(2, 3), reshape=False, order=1)
        found[f"rotated by {angle}"] = records_of(logits_of("model", turned.clip(0.0, 1.0)), labels)
    for pixels in PIXELS:
        found[f"shifted by {pixels}"] = records_of(
            logits_of("model", shift(images, (0, 0, 0, pixels), order=1)), labels
        )
    return found


@pytest.mark.parametrize("labelled", [True, False])
def test_moved_images_are_called_shifted(halves, moved, labelled) -> None:
    calibration = records_of(*halves["calibration"])
    for name, further in moved.items():
        found = judged_by(calibration, further, labelled=labelled)
        assert found.shifted, name
        assert found.sentence.startswith("Top-1: the set is shifted"), name


def test_served_probabilities_go_stale_as_images_turn(halves, moved) -> None:
    calibration = records_of(*halves["calibration"])
    scores = [
        judged_by(calibration, moved[f"rotated by {angle}"], labelled=True)
        .events[1]
        .measures["neg_log_pmax"]
        .scores
        for angle in ANGLES
    ]
    for name in ("ece", "nll"):
        assert (np.diff([score[name] for score in scores]) > 0).all(), name


def test_entropy_tells_turned_images_from_clean_ones(halves, moved) -> None:
    turned = moved["rotated by 45"].uncertainty["entropy"]

    for clean in (records_of(*halves[half]) for half in halves):
        assert population_shift(turned, clean.uncertainty["entropy"]).auroc >= 0.85


@pytest.mark.parametrize("labelled", [True, False])
def test_clean_halves_are_rarely_called_shifted(halves, labelled) -> None:
    pool = concatenate([records_of(*half) for half in halves.values()])
    calls = 0
    for seed in range(100):
        order = np.random.default_rng(seed).permutation(pool.n_samples)
        ours, theirs = pool.take(order[:5000]), pool.take(order[5000:])
        calls += judged_by(ours, theirs, labelled=labelled, seed=seed).shifted

    assert calls <= 5
