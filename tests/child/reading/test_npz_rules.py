"""Rules on the arrays of an .npz archive: each refusal names the array, the row and the fix."""

from pathlib import Path

import numpy as np
import pytest
from dataset_files import read_all, refusal, write_npz

from service.errors import InvalidDataset, TooLarge
from service.runner.messages.limits import DatasetLimits

INPUTS = np.ones((20, 3), np.float32)
LABELS = np.arange(20) % 4
LOGITS = np.linspace(-3, 3, 80).reshape(20, 4)
PROBABILITIES = np.full((20, 4), 0.25)


def changed(array: np.ndarray, index: tuple[int, ...], value: float) -> np.ndarray:
    array = array.copy()
    array[index] = value
    return array


CASES = {
    "no labels": ({"inputs": INPUTS}, "calibration.labels", "an array `labels`"),
    "labels under another name": (
        {"inputs": INPUTS, "y": LABELS},
        "calibration.labels",
        "got `inputs`, `y`",
    ),
    "labels alone": ({"labels": LABELS}, "calibration", "`logits`"),
    "float labels": (
        {"inputs": INPUTS, "labels": LABELS.astype(float)},
        "calibration.labels",
        "labels.astype('int64')",
    ),
    "boolean labels": (
        {"inputs": INPUTS, "labels": LABELS > 1},
        "calibration.labels",
        "labels.astype('int64')",
    ),
    "one-hot labels": (
        {"inputs": INPUTS, "labels": np.eye(4, dtype=int)[LABELS]},
        "calibration.labels",
        "labels.argmax(axis=1)",
    ),
    "labels in a column": (
        {"inputs": INPUTS, "labels": LABELS[:, None]},
        "calibration.labels",
        "labels.ravel()",
    ),
    "negative label": (
        {"inputs": INPUTS, "labels": changed(LABELS, (17,), -1)},
        "calibration.labels[17]",
        "got -1; leave out samples without a label",
    ),
    "huge label": (
        {"inputs": INPUTS, "labels": changed(LABELS.astype(np.uint64), (17,), 2**64 - 1)},
        "calibration.labels[17]",
        "got 18446744073709551615",
    ),
    "label no class of the logits": (
        {"logits": LOGITS, "labels": changed(LABELS, (3,), 4)},
        "calibration.labels[3]",
        "from 0 to 3, got 4",
    ),
    "fewer labels": (
        {"inputs": INPUTS, "labels": LABELS[:19]},
        "calibration.inputs",
        "expected 19 rows, as many as `labels` has, got 20",
    ),
    "one label for all": (
        {"inputs": INPUTS, "labels": LABELS[:1]},
        "calibration.inputs",
        "expected 1 rows",
    ),
    "no samples": (
        {"inputs": INPUTS[:0], "labels": LABELS[:0]},
        "calibration.labels",
        "at least one sample",
    ),
    "inputs without values": (
        {"inputs": np.ones((20, 0)), "labels": LABELS},
        "calibration.inputs",
        "shape (20, 0)",
    ),
    "inputs and logits": (
        {"inputs": INPUTS, "logits": LOGITS, "labels": LABELS},
        "calibration",
        "got `inputs`, `logits`",
    ),
    "logits and probabilities": (
        {"probabilities": PROBABILITIES, "logits": LOGITS, "labels": LABELS},
        "calibration",
        "one of them alone",
    ),
    "nan in inputs": (
        {"inputs": changed(INPUTS, (11, 2), np.nan), "labels": LABELS},
        "calibration.inputs[11]",
        "got nan at [2]",
    ),
    "inf in half inputs": (
        {"inputs": changed(INPUTS.astype(np.float16), (8, 0), -np.inf), "labels": LABELS},
        "calibration.inputs[8]",
        "got -inf",
    ),
    "nan in logits": (
        {"logits": changed(LOGITS, (11, 2), np.nan), "labels": LABELS},
        "calibration.logits[11][2]",
        "got nan",
    ),
    "inf in logits": (
        {"logits": changed(LOGITS, (19, 3), np.inf), "labels": LABELS},
        "calibration.logits[19][3]",
        "got inf",
    ),
    "class ruled out by -inf": (
        {"logits": changed(LOGITS, (0, 0), -np.inf), "labels": LABELS},
        "calibration.logits[0][0]",
        "-10000",
    ),
    "nan in probabilities": (
        {"probabilities": changed(PROBABILITIES, (4, 1), np.nan), "labels": LABELS},
        "calibration.probabilities[4][1]",
        "got nan",
    ),
    "negative probability": (
        {"probabilities": changed(PROBABILITIES, (4, 1), -1e-9), "labels": LABELS},
        "calibration.probabilities[4][1]",
        "from 0 to 1",
    ),
    "probability above one": (
        {"probabilities": LOGITS + 5, "labels": LABELS},
        "calibration.probabilities[0][0]",
        "from 0 to 1, got 2.0",
    ),
    "sum off by 0.002": (
        {"probabilities": changed(PROBABILITIES, (13, 0), 0.252), "labels": LABELS},
        "calibration.probabilities[13]",
        "got 1.002",
    ),
    "one class": (
        {"probabilities": np.ones((20, 1)), "labels": LABELS * 0},
        "calibration.probabilities",
        "at least 2 classes, got 1",
    ),
    "flat logits": (
        {"logits": LOGITS[:, 0], "labels": LABELS},
        "calibration.logits",
        "shape (samples, classes)",
    ),
    "deep logits": (
        {"logits": LOGITS[:, :, None], "labels": LABELS},
        "calibration.logits",
        "shape (samples, classes)",
    ),
    "integer logits": (
        {"logits": LOGITS.astype(int), "labels": LABELS},
        "calibration.logits",
        ".astype('float32')",
    ),
    "supplied column of another length": (
        {"inputs": INPUTS, "labels": LABELS, "uncertainty_human": np.ones(19)},
        "calibration.uncertainty_human",
        "expected 20 rows",
    ),
    "supplied matrix": (
        {"inputs": INPUTS, "labels": LABELS, "uncertainty_human": np.ones((20, 2))},
        "calibration.uncertainty_human",
        "one float per sample",
    ),
    "supplied integers": (
        {"inputs": INPUTS, "labels": LABELS, "uncertainty_human": LABELS},
        "calibration.uncertainty_human",
        "one float per sample",
    ),
}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_broken_rule_is_named_with_its_place(
    tmp_path: Path, case: str, *, compressed: bool
) -> None:
    arrays, location, message = CASES[case]
    error = refusal(write_npz(tmp_path / "set.npz", compressed=compressed, **arrays))
    assert type(error) is InvalidDataset
    assert error.violations[0].location == location
    assert message in error.violations[0].message


def test_the_location_is_the_callers(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "set.npz", inputs=INPUTS, labels=changed(LABELS, (2,), -5))
    assert refusal(path, location="evaluation").violations[0].location == "evaluation.labels[2]"


def test_rows_are_counted_over_batches_and_label_slices(tmp_path: Path) -> None:
    labels = np.zeros(200_000, np.int32)
    inputs = np.zeros((200_000, 1), np.float32)
    path = write_npz(tmp_path / "a.npz", inputs=inputs, labels=changed(labels, (150_003,), -1))
    assert refusal(path).violations[0].location == "calibration.labels[150003]"
    path = write_npz(tmp_path / "b.npz", inputs=changed(inputs, (99_999, 0), np.nan), labels=labels)
    error = refusal(path, batch_size=1000)
    assert error.violations[0].location == "calibration.inputs[99999]"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_softmax_in_its_own_precision_is_a_distribution(
    tmp_path: Path, dtype: type[np.floating]
) -> None:
    logits = np.random.default_rng(0).normal(size=(20, 100)) * 3
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True)).astype(dtype)
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True, dtype=dtype)
    path = write_npz(tmp_path / "set.npz", probabilities=probabilities, labels=LABELS)
    assert read_all(path)[0]["probabilities"].dtype == dtype


def test_a_sum_off_by_less_than_a_thousandth_is_one(tmp_path: Path) -> None:
    probabilities = changed(PROBABILITIES, (13, 0), 0.2509)
    read_all(write_npz(tmp_path / "set.npz", probabilities=probabilities, labels=LABELS))


@pytest.mark.parametrize(
    ("limits", "location"),
    [
        (DatasetLimits(max_samples=19), "calibration.labels"),
        (DatasetLimits(max_classes=3), "calibration.logits"),
        (DatasetLimits(max_row_bytes=31), "calibration"),
        (DatasetLimits(max_inflated_bytes=800), "calibration"),
    ],
)
def test_limits_are_held_to_what_the_headers_claim(
    tmp_path: Path, limits: DatasetLimits, location: str
) -> None:
    path = write_npz(tmp_path / "set.npz", compressed=True, logits=LOGITS, labels=LABELS)
    error = refusal(path, limits=limits)
    assert type(error) is TooLarge
    assert error.violations[0].location == location


def test_limits_are_inclusive(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "set.npz", logits=LOGITS, labels=LABELS)
    read_all(path, limits=DatasetLimits(max_samples=20, max_classes=4, max_row_bytes=32))
