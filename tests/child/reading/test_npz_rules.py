"""Rules for the arrays of an .npz archive: a refusal names the array, the row and the fix."""

import numpy as np
import pytest
from dataset_files import check_refused, read_all, refusal, write_npz

INPUTS = np.ones((20, 3), np.float32)
LABELS = np.arange(20) % 4
LOGITS = np.linspace(-3, 3, 80).reshape(20, 4)
PROBABILITIES = np.full((20, 4), 0.25)


def changed(array: np.ndarray, index: tuple[int, ...], value: float) -> np.ndarray:
    array = array.copy()
    array[index] = value
    return array


def of_inputs(inputs: np.ndarray = INPUTS, labels: np.ndarray = LABELS, **more: np.ndarray):
    return {"inputs": inputs, "labels": labels} | more


def of_logits(logits: np.ndarray = LOGITS, labels: np.ndarray = LABELS):
    return {"logits": logits, "labels": labels}


def of_probabilities(probabilities: np.ndarray):
    return {"probabilities": probabilities, "labels": LABELS}


def with_logit(row: int, column: int, value: float):
    return of_logits(changed(LOGITS, (row, column), value))


def with_probability(row: int, column: int, value: float):
    return of_probabilities(changed(PROBABILITIES, (row, column), value))


HUGE = changed(LABELS.astype(np.uint64), (17,), 2**64 - 1)
# The arrays, and where and how they are refused.
CASES = {
    "no labels": ({"inputs": INPUTS}, ".labels", "an array `labels`"),
    "labels under another name": ({"inputs": INPUTS, "y": LABELS}, ".labels", "got `inputs`, `y`"),
    "labels alone": ({"labels": LABELS}, "", "`logits`"),
    "broken label": (of_inputs(labels=changed(LABELS * 1.0, (17,), 8.5)), ".labels[17]", "'8.5'"),
    "regression": (of_inputs(labels=LABELS + 0.25), ".labels[0]", "regression is not supported"),
    "no label": (of_inputs(labels=changed(LABELS * 1.0, (3,), np.nan)), ".labels[3]", "leave out"),
    "complex labels": (of_inputs(labels=LABELS * 1j), ".labels", "got complex"),
    "one-hot labels": (of_inputs(labels=np.eye(4, dtype=int)[LABELS]), ".labels", "argmax(axis=1)"),
    "negative label": (of_inputs(labels=changed(LABELS, (17,), -1)), ".labels[17]", "leave out"),
    "huge label": (of_inputs(labels=HUGE), ".labels[17]", "got 18446744073709551615"),
    "no class": (of_logits(labels=changed(LABELS, (3,), 4)), ".labels[3]", "from 0 to 3, got 4"),
    "fewer labels": (of_inputs(labels=LABELS[:19]), ".inputs", "expected 19 rows"),
    "no samples": (of_inputs(INPUTS[:0], LABELS[:0]), ".labels", "at least one sample"),
    "no values": (of_inputs(np.ones((20, 0))), ".inputs", "shape (20, 0)"),
    "inputs and logits": (of_inputs(logits=LOGITS), "", "got `inputs`, `logits`"),
    "two kinds": (of_logits() | of_probabilities(PROBABILITIES), "", "one of them alone"),
    "nan in no table": (
        of_inputs(changed(INPUTS[:, :, None], (11, 2, 0), np.nan)),
        ".inputs[11]",
        "got nan at [2, 0]; missing values are read in tables of at most 256 columns only",
    ),
    "inf": (of_inputs(changed(INPUTS.astype("f2"), (8, 0), -np.inf)), ".inputs[8]", "got -inf"),
    "nan in logits": (with_logit(11, 2, np.nan), ".logits[11][2]", "got nan"),
    "negative probability": (with_probability(4, 1, -2e-3), ".probabilities[4][1]", "from 0 to 1"),
    "percentages": (of_probabilities(PROBABILITIES * 100), ".probabilities[0][0]", "divide by 100"),
    "sum off by 0.002": (with_probability(13, 0, 0.252), ".probabilities[13]", "got 1.002"),
    "one class": (of_logits(LOGITS[:, :1], LABELS * 0), ".logits", "at least 2 classes, got 1"),
    "deep logits": (of_logits(LOGITS[:, :, None]), ".logits", "shape (samples, classes)"),
    "integer logits": (of_logits(LOGITS.astype(int)), ".logits", ".astype('float32')"),
    "supplied of another length": (
        of_inputs(uncertainty_human=np.ones(19)),
        ".uncertainty_human",
        "expected 20 rows",
    ),
    "supplied matrix": (
        of_inputs(uncertainty_human=np.ones((20, 2))),
        ".uncertainty_human",
        "one float per sample",
    ),
    "text": (of_inputs(INPUTS.astype(str)), ".inputs", "got text"),
    "objects": (of_inputs(np.array([[object()] * 3] * 20)), ".inputs", "never unpickled"),
    "complex": (of_inputs(INPUTS.astype(complex)), ".inputs", "got complex numbers"),
    "dates": (of_inputs(np.zeros((20, 1), "M8[s]")), ".inputs", "got dates"),
    "a scalar": (of_inputs(np.float32(1)), ".inputs", "got a scalar"),
}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_broken_rule_is_named_with_its_place(path, case, *, compressed):
    arrays, location, message = CASES[case]
    check_refused(write_npz(path, compressed=compressed, **arrays), location, message)


def test_a_large_array_in_fortran_order_is_refused(path, monkeypatch):
    monkeypatch.setattr("service.child.reading.array_file.MAX_FORTRAN_BYTES", INPUTS.nbytes)
    path = write_npz(path, **of_inputs(np.asfortranarray(INPUTS)))
    check_refused(path, ".inputs", "np.ascontiguousarray")


def test_the_location_is_the_callers(path):
    path = write_npz(path, inputs=INPUTS, labels=changed(LABELS, (2,), -5))
    assert refusal(path, location="evaluation").violations[0].location == "evaluation.labels[2]"


def test_rows_are_counted_over_batches_and_label_slices(tmp_path):
    labels = np.zeros(200_000, np.int32)
    inputs = np.zeros((200_000, 1), np.float32)
    path = write_npz(tmp_path / "a.npz", inputs=inputs, labels=changed(labels, (150_003,), -1))
    assert refusal(path).violations[0].location == "calibration.labels[150003]"
    path = write_npz(tmp_path / "b.npz", inputs=changed(inputs, (99_999, 0), np.inf), labels=labels)
    error = refusal(path, batch_size=1000)
    assert error.violations[0].location == "calibration.inputs[99999]"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_softmax_in_its_own_precision_is_a_distribution(path, dtype):
    logits = np.random.default_rng(0).normal(size=(20, 100)) * 3
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True)).astype(dtype)
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True, dtype=dtype)
    path = write_npz(path, probabilities=probabilities, labels=LABELS)
    assert read_all(path)[0]["probabilities"].dtype == dtype


def test_a_sum_off_by_less_than_a_thousandth_is_one(path):
    probabilities = changed(PROBABILITIES, (13, 0), 0.2509)
    read_all(write_npz(path, probabilities=probabilities, labels=LABELS))
