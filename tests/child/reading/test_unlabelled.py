"""Sets without labels: read where the caller does without them, refused elsewhere."""

from pathlib import Path

import numpy as np
import pytest
from dataset_files import (
    COLUMN_FORMATS,
    check_read,
    check_refused,
    info_of,
    output_columns,
    read_all,
    read_supplied,
    refusal,
    write_logits,
    write_npz,
    write_parquet,
)

from service.errors import InvalidDataset, TooLarge
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading

N = 100
LABELS = np.arange(N) % 3
LOGITS = np.random.default_rng(0).normal(size=(N, 3))
HUMAN = np.linspace(0, 1, N)
COLUMNS = output_columns(LOGITS, LABELS)
UNLABELLED = {name: values for name, values in COLUMNS.items() if name != "label"}


def write(path: Path, file_format: str, labels: np.ndarray | None, rows: int = N) -> Path:
    return write_logits(path, file_format, LOGITS[:rows], labels, uncertainty_human=HUMAN[:rows])


@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_labels_may_be_missing_and_are_checked_where_they_are(path, file_format):
    write(path, file_format, None)
    check_read(path, {"logits": LOGITS}, None, n_samples=N, n_classes=3)
    np.testing.assert_array_equal(read_supplied(path, labels_required=False)["human"], HUMAN)
    write(path, file_format, LABELS)
    assert info_of(path, labels_required=False).labelled
    np.testing.assert_array_equal(read_all(path, labels_required=False)[1], LABELS)
    write(path, file_format, np.where(np.arange(N) == 41, 3, LABELS))
    place = ".labels" if file_format == "npz" else ".label"
    check_refused(path, f"{place}[41]", "got 3", labels_required=False)


@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_rows_without_labels_are_counted(path, file_format):
    options = {"labels_required": False, "limits": DatasetLimits(max_samples=N - 1)}
    read_all(write(path, file_format, None, rows=N - 1), **options)
    for rows, refused in ((N, TooLarge), (0, InvalidDataset)):
        error = refusal(write(path, file_format, None, rows=rows), **options)
        assert type(error) is refused
        place = "calibration.logits" if file_format == "npz" else "calibration"
        assert error.violations[0].location == place


BROKEN_ARRAYS = [
    ({"image": HUMAN, "mask": HUMAN[:-1]}, ".mask", "100 rows, as many as `image`"),
    ({"logits": LOGITS, "uncertainty_a": HUMAN[:-1]}, ".uncertainty_a", "`logits`"),
    ({"uncertainty_human": HUMAN}, "", "inputs"),
    ({"logits": LOGITS, "label": LABELS}, "", "got `logits`, `label`"),
    ({}, "", "inputs"),
]


@pytest.mark.parametrize(("arrays", "location", "named"), BROKEN_ARRAYS)
def test_arrays_without_labels_agree_among_themselves(path, arrays, location, named):
    check_refused(write_npz(path, **arrays), location, named, labels_required=False)


def test_columns_beside_outputs(path):
    """Those that look like a label are refused, ids and integers are not read."""
    for name in ("labels", "Label", "y"):
        path = write_parquet(path, UNLABELLED | {name: LABELS})
        assert f"`{name}`" in refusal(path, labels_required=False).message
    for name in ("", "transaction_id", "Customer ID", "__index_level_0__", "branch"):
        write_parquet(path, {name: LABELS, "answer": ["yes"] * N} | UNLABELLED)
        info = check_read(path, {"logits": LOGITS}, None)
        assert info.notes[-1].endswith(f": `{name}`, `answer`.")


def test_labels_that_are_nearly_called_as_before_are_refused(path):
    """Else the set would be judged as one without labels."""
    options = {"reading": Reading(columns={"inputs": ["age"], "label": ["outcome"]})}
    options["labels_required"] = False
    for name in ("Outcome", "outcme"):
        path = write_parquet(path, {"age": HUMAN, name: LABELS})
        assert f"`{name}` to `outcome`" in refusal(path, **options).message
    assert not info_of(write_parquet(path, {"age": HUMAN, "x": LABELS}), **options).labelled
