"""Sets without labels: read where the caller does without them, refused elsewhere."""

from pathlib import Path

import numpy as np
import pytest
from dataset_files import (
    COLUMN_FORMATS,
    check_refused,
    info_of,
    output_columns,
    read_all,
    read_supplied,
    refusal,
    write_logits,
    write_npz,
    write_parquet,
    write_text,
)

from service.errors import InvalidDataset, TooLarge
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading

N_SAMPLES = 100
LABELS = np.arange(N_SAMPLES) % 3
LOGITS = np.random.default_rng(0).normal(size=(N_SAMPLES, 3))
HUMAN = np.linspace(0, 1, N_SAMPLES)


def write(path: Path, file_format: str, labels: np.ndarray | None, rows: int = N_SAMPLES) -> Path:
    return write_logits(path, file_format, LOGITS[:rows], labels, uncertainty_human=HUMAN[:rows])


def place_of(file_format: str) -> str:
    return "calibration.labels" if file_format == "npz" else "calibration.label"


@pytest.mark.parametrize("batch_size", [1, 7, N_SAMPLES, 1000])
@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_a_set_without_labels_is_read_where_none_are_required(path, file_format, batch_size):
    write(path, file_format, None)
    found, labels = read_all(path, batch_size=batch_size, labels_required=False)
    np.testing.assert_array_equal(found["logits"], LOGITS)
    np.testing.assert_array_equal(labels, np.zeros(N_SAMPLES))
    assert labels.dtype == np.int64
    info = info_of(path, labels_required=False)
    assert (info.labelled, info.n_samples, info.n_classes) == (False, N_SAMPLES, 3)
    supplied = read_supplied(path, batch_size=batch_size, labels_required=False)
    np.testing.assert_array_equal(supplied["human"], HUMAN)


@pytest.mark.parametrize("labels_required", [False, True])
@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_labels_that_are_there_are_read_and_checked(path, file_format, *, labels_required):
    write(path, file_format, LABELS)
    assert info_of(path, labels_required=labels_required).labelled
    np.testing.assert_array_equal(read_all(path, labels_required=labels_required)[1], LABELS)
    for wrong in (-1, 3):
        labels = LABELS.copy()
        labels[41] = wrong
        error = refusal(write(path, file_format, labels), labels_required=labels_required)
        assert error.violations[0].location == f"{place_of(file_format)}[41]"


@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_rows_without_labels_are_counted(path, file_format):
    options = {"labels_required": False, "limits": DatasetLimits(max_samples=N_SAMPLES - 1)}
    read_all(write(path, file_format, None, rows=N_SAMPLES - 1), **options)
    for rows, refused in ((N_SAMPLES, TooLarge), (0, InvalidDataset)):
        error = refusal(write(path, file_format, None, rows=rows), **options)
        assert type(error) is refused
        place = "calibration.logits" if file_format == "npz" else "calibration"
        assert error.violations[0].location == place


@pytest.mark.parametrize(
    ("arrays", "location", "message"),
    [
        ({"image": HUMAN, "mask": HUMAN[:-1]}, ".mask", "expected 100 rows, as many as `image`"),
        ({"logits": LOGITS, "uncertainty_a": HUMAN[:-1]}, ".uncertainty_a", "as `logits` has"),
        ({"uncertainty_human": HUMAN}, "", "the model's inputs"),
        ({"logits": LOGITS, "label": LABELS}, "", "got `logits`, `label`"),
        ({}, "", "the model's inputs"),
    ],
)
def test_arrays_without_labels_agree_among_themselves(path, arrays, location, message):
    check_refused(write_npz(path, **arrays), location, message, labels_required=False)


@pytest.mark.parametrize("name", ["labels", "Label", "y"])
def test_a_column_that_looks_like_a_label_is_refused(path, name):
    table = output_columns(LOGITS, LABELS)
    table[name] = table.pop("label")
    error = refusal(write_parquet(path, table), labels_required=False)
    assert f"`{name}`" in error.message


@pytest.mark.parametrize(
    "name", ["", "id", "transaction_id", "Customer ID", "orderId", "row", "__index_level_0__"]
)
def test_ids_beside_outputs_are_not_read(path, name):
    table = output_columns(LOGITS, LABELS)
    del table["label"]
    texts = {"answer": [f"answer {label}" for label in LABELS]}
    others = {name: np.arange(len(LABELS))} | texts
    info = info_of(write_parquet(path, others | table), labels_required=False)
    assert not info.labelled
    assert info.notes[-1] == f"Other columns are not read: `{name}`, `answer`."
    arrays, _ = read_all(path, labels_required=False)
    np.testing.assert_array_equal(arrays["logits"], LOGITS)


def test_integers_beside_labelled_outputs_are_not_read(tmp_path):
    text = "account,label,when,prob_a,prob_b\n17,b,2024-01-31,0.25,0.75\n18,a,2024-02-01,1,0\n"
    path = write_text(tmp_path / "set.csv", text)
    arrays, labels = read_all(path)
    assert labels.tolist() == [1, 0]
    np.testing.assert_array_equal(arrays["probabilities"], [[0.25, 0.75], [1, 0]])
    assert info_of(path).notes[-1] == "Other columns are not read: `account`, `when`."


def test_integers_beside_outputs_to_predict_are_not_read(path):
    table = output_columns(LOGITS, LABELS)
    del table["label"]
    info = info_of(write_parquet(path, {"branch": LABELS} | table), labels_required=False)
    assert info.notes[-1] == "Other columns are not read: `branch`."


@pytest.mark.parametrize(
    ("name", "is_refused"), [("Outcome", True), ("outcme", True), ("x", False)]
)
def test_labels_that_are_nearly_called_as_before_are_refused(path, name, is_refused):
    """Else the set would be judged as one without labels."""
    reading = Reading(columns={"inputs": ["age"], "label": ["outcome"]})
    path = write_parquet(path, {"age": HUMAN, name: LABELS})
    if not is_refused:
        assert not info_of(path, labels_required=False, reading=reading).labelled
        return
    error = refusal(path, labels_required=False, reading=reading)
    assert f"rename `{name}` to `outcome`" in error.message
