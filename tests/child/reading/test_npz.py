"""Arrays of .npz archives: read back as numpy wrote them, or refused at the array and the row."""

import numpy as np
import pytest
from dataset_files import LIMITS, changed, check_read, check_refused, read_all, refusal, write_npz
from own_process import peak_of

from service.child.reading.open_set import open_dataset

KINDS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "b1")
ROW_SHAPES = {"inputs": (), "image": (3,), "block/x:0": (2, 1, 4)}
N = 20
INPUTS = np.ones((N, 3), np.float32)
LABELS = np.arange(N) % 4
LOGITS = np.linspace(-3, 3, 4 * N).reshape(N, 4)
PROBABILITIES = np.full((N, 4), 0.25)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(("byte_order", "order"), [("<", "C"), (">", "F")])
@pytest.mark.parametrize("kind", KINDS)
def test_inputs_come_back_as_numpy_wrote_them(path, kind, byte_order, order, *, compressed):
    rng, dtype = np.random.default_rng(1), np.dtype(byte_order + kind)
    numbers = {name: rng.uniform(-99, 99, (N, *row)) for name, row in ROW_SHAPES.items()}
    arrays = {n: np.asarray(array.astype(dtype), order=order) for n, array in numbers.items()}
    labels = LABELS % 2  # whole numbers and booleans of any type
    write_npz(path, compressed=compressed, **arrays, labels=labels.astype(dtype))
    check_read(path, arrays, labels, kind="inputs", n_classes=None)


@pytest.mark.process
@pytest.mark.parametrize("compressed", [False, True])
def test_memory_does_not_grow_with_the_samples(path, *, compressed):
    n_samples = 320_000
    arrays = {"inputs": np.zeros((n_samples, 25), np.float32), "labels": np.zeros(n_samples, int)}
    write_npz(path, compressed=compressed, **arrays)

    def read() -> None:
        with open_dataset(path, location="calibration", limits=LIMITS) as dataset:
            assert sum(len(batch.labels) for batch in dataset.batches(256)) == n_samples

    assert peak_of(read) < 4_000_000 < n_samples * 25 * 4 / 7


def of_inputs(inputs: np.ndarray = INPUTS, labels: np.ndarray = LABELS, **more: np.ndarray):
    return {"inputs": inputs, "labels": labels} | more


def of_labels(index: int, value: float, dtype: str = "f8"):
    return of_inputs(labels=changed(LABELS.astype(dtype), (index,), value))


def of_logits(logits: np.ndarray = LOGITS, labels: np.ndarray = LABELS):
    return {"logits": logits, "labels": labels}


def of_probabilities(probabilities: np.ndarray, labels: np.ndarray = LABELS):
    return {"probabilities": probabilities, "labels": labels}


NO_TABLE = changed(INPUTS[:, :, None], (11, 2, 0), np.nan)
NEGATIVE = of_probabilities(changed(PROBABILITIES, (4, 1), -2e-3))
# The arrays, where they are refused, and what the message names: the figure, or the fix.
CASES = {
    "labels under another name": ({"inputs": INPUTS, "y": LABELS}, ".labels", "`inputs`, `y`"),
    "regression": (of_inputs(labels=LABELS + 0.25), ".labels[0]", "regression"),
    "no label": (of_labels(3, np.nan), ".labels[3]", "leave out"),
    "complex labels": (of_inputs(labels=LABELS * 1j), ".labels", "complex"),
    "one-hot labels": (of_inputs(labels=np.eye(4, dtype=int)[LABELS]), ".labels", "argmax(axis=1)"),
    "negative label": (of_labels(17, -1, "i8"), ".labels[17]", "leave out"),
    "huge label": (of_labels(17, 2**64 - 1, "u8"), ".labels[17]", "got 18446744073709551615"),
    "no class": (of_logits(labels=changed(LABELS, (3,), 4)), ".labels[3]", "from 0 to 3, got 4"),
    "fewer labels": (of_inputs(labels=LABELS[:19]), ".inputs", "19"),
    "no samples": (of_inputs(INPUTS[:0], LABELS[:0]), ".labels", "sample"),
    "no values": (of_inputs(np.ones((N, 0))), ".inputs", "shape (20, 0)"),
    "inputs and logits": (of_inputs(logits=LOGITS), "", "got `inputs`, `logits`"),
    "nan in no table": (of_inputs(NO_TABLE), ".inputs[11]", "nan at [2, 0]; missing values"),
    "negative probability": (NEGATIVE, ".probabilities[4][1]", "from 0 to 1"),
    "percentages": (of_probabilities(PROBABILITIES * 100), ".probabilities[0][0]", "by 100"),
    "one class": (of_logits(LOGITS[:, :1], LABELS * 0), ".logits", "2 classes, got 1"),
    "deep logits": (of_logits(LOGITS[:, :, None]), ".logits", "(samples, classes)"),
    "integer logits": (of_logits(LOGITS.astype(int)), ".logits", ".astype('float32')"),
    "matrix of them": (of_inputs(uncertainty_a=np.ones((N, 2))), ".uncertainty_a", "one float"),
    "text": (of_inputs(INPUTS.astype(str)), ".inputs", "text"),
    "objects": (of_inputs(np.array([[object()] * 3] * N)), ".inputs", "unpickled"),
    "dates": (of_inputs(np.zeros((N, 1), "M8[s]")), ".inputs", "dates"),
    "a scalar": (of_inputs(np.float32(1)), ".inputs", "scalar"),
}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_broken_rule_is_named_with_its_place(path, case, *, compressed):
    arrays, location, named = CASES[case]
    check_refused(write_npz(path, compressed=compressed, **arrays), location, named)


def test_a_large_array_in_fortran_order_is_refused(path, monkeypatch):
    monkeypatch.setattr("service.child.reading.arrays.array_file.MAX_FORTRAN_BYTES", INPUTS.nbytes)
    path = write_npz(path, **of_inputs(np.asfortranarray(INPUTS)))
    check_refused(path, ".inputs", "np.ascontiguousarray")


def test_rows_are_counted_over_batches_and_label_slices(path):
    labels, inputs = np.zeros(200_000, np.int32), np.zeros((200_000, 1), np.float32)
    write_npz(path, inputs=inputs, labels=changed(labels, (150_003,), -1))
    assert refusal(path).violations[0].location == "calibration.labels[150003]"
    write_npz(path, inputs=changed(inputs, (99_999, 0), np.inf), labels=labels)
    error = refusal(path, batch_size=1000)
    assert error.violations[0].location == "calibration.inputs[99999]"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_softmax_in_its_own_precision_is_a_distribution(path, dtype):
    logits = np.random.default_rng(0).normal(size=(N, 100)) * 3
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True)).astype(dtype)
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True, dtype=dtype)
    path = write_npz(path, **of_probabilities(probabilities))
    known = {"kind": "probabilities", "format": "npz", "n_samples": N, "n_classes": 100}
    check_read(path, {"probabilities": probabilities}, LABELS, **known)
    # A sum may be off by less than a thousandth.
    read_all(write_npz(path, **of_probabilities(changed(PROBABILITIES, (13, 0), 0.2509))))
