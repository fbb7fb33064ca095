"""Formats are known by their content; what is sent by mistake is named."""

import gzip
import pickle
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dataset_files import (
    LIMITS,
    info_of,
    npy_bytes,
    read_all,
    refusal,
    write_columns,
    write_text,
)
from picture_files import AS_THEY_ARE, WRITERS, plain_png

from service.child.reading.open_set import FORMATS, open_dataset
from service.errors import InvalidDataset, TooLarge, UnsupportedFormat
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading

TABLE = {"label": np.array([0, 1]), "logit_0": np.array([1.0, 2]), "logit_1": np.array([3.0, 4])}
CSV = "label,logit_0,logit_1\n0,1,3\n1,2,4\n"


LOGITS = np.stack([TABLE["logit_0"], TABLE["logit_1"]], axis=1)
PICTURES = {"cat/1.png": plain_png(1), "dog/1.png": plain_png(2)}


def write(path: Path, file_format: str) -> Path:
    """Write two samples of labels 0 and 1: of logits, or of pictures."""
    if file_format in WRITERS:
        return WRITERS[file_format](path, PICTURES)
    if file_format == "npy":
        path.write_bytes(npy_bytes(LOGITS))
        return path
    with path.open("wb") as file:  # numpy adds an ending to a name
        if file_format == "npz":
            np.savez(file, logits=LOGITS, labels=TABLE["label"])
            return path
    return write_columns(path, file_format, TABLE)


def reading_of(path: Path, file_format: str) -> Reading:
    """Return what has to be said of such a file."""
    if file_format != "npy":
        return AS_THEY_ARE if file_format in WRITERS else Reading()
    labels = path.with_name("labels.npy")
    labels.write_bytes(npy_bytes(TABLE["label"]))
    return Reading(labels=labels, kind="logits")


@pytest.mark.parametrize("name", ["set", "set.npz", "set.csv", "set.parquet", "set.csv.gz"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_the_format_does_not_depend_on_the_file_name(tmp_path, file_format, name):
    path = write(tmp_path / name, file_format)
    reading = reading_of(path, file_format)
    with open_dataset(path, location="calibration", limits=LIMITS, reading=reading) as dataset:
        assert dataset.info.format == file_format
        (batch,) = dataset.batches(2)
        first, second = dataset.batches(1), dataset.batches(1)
        assert next(first).start == next(second).start == 0
    np.testing.assert_array_equal(batch.labels, [0, 1])
    if file_format in WRITERS:
        np.testing.assert_array_equal(batch.arrays["pixels"][:, 0, 0], [[1] * 3, [2] * 3])
    else:
        np.testing.assert_array_equal(batch.arrays["logits"], LOGITS)


@pytest.mark.parametrize("file_format", FORMATS)
def test_limits_are_inclusive(tmp_path, file_format):
    path = write(tmp_path / "set", file_format)
    reading = reading_of(path, file_format)
    row_bytes = info_of(path, reading=reading).row_bytes
    limits = DatasetLimits(max_samples=2, max_classes=2, max_row_bytes=row_bytes)
    read_all(path, reading=reading, limits=limits)
    for less in (
        {"max_samples": 1},
        {"max_classes": 1},
        {"max_row_bytes": row_bytes - 1},
        {"max_inflated_bytes": 2 * row_bytes - 1},
    ):
        error = refusal(path, reading=reading, limits=replace(limits, **less))
        assert type(error) is TooLarge


@pytest.mark.parametrize(
    ("data", "message"),
    [
        *((pickle.dumps([1, 2], protocol), "never loaded") for protocol in (2, 3, 4, 5)),
        (gzip.compress(CSV.encode(), mtime=0), "decompressed"),
        (CSV.encode("utf-16"), "UTF-8"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (b"\x89PNG\r\n\x1a\n", "a single picture"),
        (b"Rar!\x1a\x07\x00", ".tar"),
        (b"label\0logit_0", "another kind"),
        ("label,größe\n".encode("latin-1"), "another kind"),
    ],
)
def test_other_files_are_named(tmp_path, data, message):
    path = tmp_path / "set.npz"
    path.write_bytes(data)
    error = refusal(path)
    assert type(error) is UnsupportedFormat
    assert error.violations[0].location == "calibration"
    assert message in error.message


def test_an_empty_file_is_refused(tmp_path):
    path = write_text(tmp_path / "set.csv", "")
    error = refusal(path, location="evaluation")
    assert type(error) is UnsupportedFormat
    assert error.message == "evaluation: expected a set of samples, got an empty file"


def test_a_character_that_crosses_the_end_of_the_head_is_text(tmp_path):
    names = ["label", "logit_0", "logit_1"]
    for n_bytes in range(4080, 4100):
        filler = "uncertainty_" + "é" * ((n_bytes - 40) // 2)
        text = ",".join([filler + "x" * (n_bytes % 2), *names]) + "\n0,0,1,2\n"
        # Known as text, and then refused for the name of its column.
        error = refusal(write_text(tmp_path / "set.csv", text))
        assert type(error) is InvalidDataset
        assert "ASCII letters" in error.message


def test_a_closed_set_closes_its_file(tmp_path):
    path = write(tmp_path / "set", "npz")
    with open_dataset(path, location="calibration", limits=LIMITS) as dataset:
        next(dataset.batches(1))
        assert str(path) in open_files()
    del dataset
    assert str(path) not in open_files()


def open_files() -> set[str]:
    """Return the paths of the files that this process holds open."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.add(str(descriptor.readlink()))
    return found
