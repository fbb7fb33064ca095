"""Formats are known by their content; what is sent by mistake is named."""

import gzip
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dataset_files import (
    check_read,
    check_refused,
    info_of,
    read_all,
    refusal,
    write_columns,
    write_npz,
    write_text,
)
from picture_files import AS_THEY_ARE, WRITERS, plain_png
from running_service import npy

from service.child.reading.open_set import FORMATS
from service.errors import TooLarge, UnsupportedFormat
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading

LABELS = np.array([0, 1])
LOGITS = np.array([[1.0, 3], [2, 4]])
PICTURES = {"cat/1.png": plain_png(1), "dog/1.png": plain_png(2)}
PIXELS = np.repeat(np.uint8([1, 2]), 3 * 4 * 3).reshape(2, 3, 4, 3)
CSV = b"label,logit_0,logit_1\n0,1,3\n1,2,4\n"


def write(path: Path, file_format: str) -> tuple[Path, Reading]:
    """Write two samples, logits or pictures; return what has to be said of such a file."""
    if file_format in WRITERS:
        return WRITERS[file_format](path, PICTURES), AS_THEY_ARE
    if file_format == "npy":
        labels = path.with_name("labels.npy")
        labels.write_bytes(npy(LABELS))
        path.write_bytes(npy(LOGITS))
        return path, Reading(labels=labels, kind="logits")
    if file_format == "npz":  # numpy adds an ending to other names
        write_npz(path.with_name("written.npz"), logits=LOGITS, labels=LABELS).rename(path)
    else:
        table = {"label": LABELS, "logit_0": LOGITS[:, 0], "logit_1": LOGITS[:, 1]}
        write_columns(path, file_format, table)
    return path, Reading()


@pytest.mark.parametrize("name", ["set", "set.npz", "set.csv", "set.parquet"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_the_format_does_not_depend_on_the_file_name(tmp_path, file_format, name):
    path, reading = write(tmp_path / name, file_format)
    arrays = {"pixels": PIXELS} if file_format in WRITERS else {"logits": LOGITS}
    check_read(path, arrays, LABELS, reading=reading, format=file_format)


@pytest.mark.parametrize("limit", ["samples", "classes", "row_bytes", "inflated_bytes"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_limits_are_inclusive(tmp_path, file_format, limit):
    path, reading = write(tmp_path / "set", file_format)
    row_bytes = info_of(path, reading=reading).row_bytes
    most = {"samples": 2, "classes": 2, "row_bytes": row_bytes, "inflated_bytes": 2 * row_bytes}
    limits = DatasetLimits(max_samples=2, max_classes=2, max_row_bytes=row_bytes)
    read_all(path, reading=reading, limits=limits)
    less = replace(limits, **{f"max_{limit}": most[limit] - 1})
    assert type(refusal(path, reading=reading, limits=less)) is TooLarge


OTHER_FILES = [(pickle.dumps([1, 2], protocol), "pickle") for protocol in (2, 3, 4, 5)]
OTHER_FILES += [(gzip.compress(CSV, mtime=0), "decompressed")]
OTHER_FILES += [(CSV.decode().encode("utf-16"), "UTF-8"), (b"\x89HDF\r\n\x1a\n", "HDF5")]
OTHER_FILES += [(b"\x89PNG\r\n\x1a\n", "picture"), (b"Rar!\x1a\x07\x00", ".tar")]
OTHER_FILES += [(b"label\0logit_0", "kind"), ("label,größe\n".encode("latin-1"), "kind")]
OTHER_FILES += [(b"", "empty")]


@pytest.mark.parametrize(("data", "named"), OTHER_FILES)
def test_other_files_are_named(path, data, named):
    path.write_bytes(data)
    error = refusal(path, location="evaluation")
    assert type(error) is UnsupportedFormat
    assert error.violations[0].location == "evaluation"
    assert named in error.message


@pytest.mark.parametrize("n_bytes", range(4080, 4100))
def test_a_character_that_crosses_the_end_of_the_head_is_text(path, n_bytes):
    filler = "uncertainty_" + "é" * ((n_bytes - 40) // 2) + "x" * (n_bytes % 2)
    # Known as text, and then refused for the name of its column.
    check_refused(write_text(path, f"{filler},label,logit_0,logit_1\n0,0,1,2\n"), "", "ASCII")
