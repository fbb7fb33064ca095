"""Sets of samples as files: well-formed, and broken in every way a test asks for."""

import csv
import json
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from service.child.reading.open_set import open_dataset
from service.errors import InvalidDataset, InvalidInput
from service.runner.messages.dataset import ArrayInfo, DatasetInfo
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import AS_IT_IS, Reading

LIMITS = DatasetLimits()


def changed(array: np.ndarray, index: Any, value: Any) -> np.ndarray:
    """Return a copy with another value at an index."""
    array = array.copy()
    array[index] = value
    return array


def write_npz(path: Path, *, compressed: bool = False, **arrays: np.ndarray) -> Path:
    """Write arrays as numpy does, objects included."""
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    return path


def npy_claim(descr: object, shape: object, *, values: bytes = b"") -> bytes:
    """Return an .npy file whose header claims whatever is asked."""
    header = repr({"descr": descr, "fortran_order": False, "shape": shape})
    return npy_header(header.encode("latin-1")) + values


def npy_header(text: bytes) -> bytes:
    """Return the start of an .npy file with any header text."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def write_members(
    path: Path,
    members: Sequence[tuple[str, bytes]] | Mapping[str, bytes],
    compression: int = zipfile.ZIP_STORED,
) -> Path:
    """Write a zip archive of any members, the same name twice if asked."""
    pairs = members.items() if isinstance(members, Mapping) else members
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in pairs:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return path


def write_text(path: Path, text: str) -> Path:
    """Write UTF-8 text."""
    path.write_bytes(text.encode("utf-8"))
    return path


def write_parquet(
    path: Any, columns: Mapping[str, object], *, features: Any = None, **options: object
) -> Any:
    """Write columns as a Parquet file; the library `datasets` keeps ``features`` in metadata."""
    table = pa.table(dict(columns))
    if features is not None:
        metadata = {"huggingface": json.dumps({"info": {"features": features}})}
        table = table.replace_schema_metadata(metadata)
    pa_parquet.write_table(table, path, **options)
    return path


TABLE_FORMATS = ("csv", "parquet")
COLUMN_FORMATS = ("npz", *TABLE_FORMATS)


def write_columns(path: Path, file_format: str, columns: Mapping[str, object]) -> Path:
    """Write a table as CSV or Parquet."""
    if file_format == "parquet":
        return write_parquet(path, columns, row_group_size=11)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        values = (np.asarray(column).tolist() for column in columns.values())
        writer.writerows(zip(*values, strict=True))
    return path


def write_logits(
    path: Path, file_format: str, logits: np.ndarray, labels: np.ndarray | None, **more: np.ndarray
) -> Path:
    """Write outputs; the columns ``more`` stand before and behind those of a table."""
    if file_format == "npz":
        named = {} if labels is None else {"labels": labels}
        return write_npz(path, logits=logits, **named, **more)
    outputs = output_columns(logits, labels)
    return write_columns(path, file_format, dict(list(more.items())[::2]) | outputs | more)


def output_columns(
    outputs: np.ndarray, labels: np.ndarray | None, prefix: str = "logit_"
) -> dict[str, np.ndarray]:
    """Return the columns of a table of outputs."""
    label = {} if labels is None else {"label": labels}
    return label | {f"{prefix}{k}": outputs[:, k] for k in range(outputs.shape[1])}


def read_all(
    path: Path, *, batch_size: int = 7, **options: object
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Read a whole set in batches and return its arrays and labels."""
    with open_dataset(path, **{"location": "calibration", "limits": LIMITS} | options) as dataset:
        batches = list(dataset.batches(batch_size))
        whole = dataset.labels()
    assert all(array.dtype.isnative for batch in batches for array in batch.arrays.values())
    labels = np.concatenate([batch.labels for batch in batches])
    np.testing.assert_array_equal(labels, whole)
    assert [batch.start for batch in batches] == list(range(0, len(labels), batch_size))
    names = dataset.info.arrays
    return {n: np.concatenate([batch.arrays[n] for batch in batches]) for n in names}, labels


def info_of(path: Path, **options: object) -> DatasetInfo:
    """Return what is known of a set once it is open."""
    with open_dataset(path, **{"location": "calibration", "limits": LIMITS} | options) as dataset:
        return dataset.info


def check_read(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    labels: Sequence[int] | np.ndarray | None,
    *,
    reading: Reading = AS_IT_IS,
    **info: object,
) -> DatasetInfo:
    """Check that a set is read, in batches of any size, as these arrays to the type and labels.

    Labels are required, unless they are None. ``info`` is what is known of the set beside that.
    """
    options = {"reading": reading, "labels_required": labels is not None}
    for batch_size in (1, 7, 1000):
        read, read_labels = read_all(path, batch_size=batch_size, **options)
        assert read.keys() == arrays.keys()
        for name, array in arrays.items():
            native = np.asarray(array, array.dtype.newbyteorder("="))
            np.testing.assert_array_equal(read[name], native, strict=True)
        expected = np.zeros(len(read_labels), int) if labels is None else np.asarray(labels, int)
        np.testing.assert_array_equal(read_labels, expected, strict=True)
    known = info_of(path, **options)
    assert {name: getattr(known, name) for name in info} == info
    shapes = {name: ArrayInfo(array.dtype.name, array.shape) for name, array in arrays.items()}
    assert (known.arrays, known.labelled) == (shapes, labels is not None)
    return known


def read_supplied(path: Path, *, batch_size: int = 7, **options: object) -> dict[str, np.ndarray]:
    """Read a whole set in batches and return its supplied columns."""
    with open_dataset(path, location="calibration", limits=LIMITS, **options) as dataset:
        batches = list(dataset.batches(batch_size))
    names = dataset.info.supplied
    assert all(tuple(batch.supplied) == names for batch in batches)
    columns = {name: [batch.supplied[name] for batch in batches] for name in names}
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def refusal(path: Path, **options: object) -> InvalidInput:
    """Read a whole set and return the error that refused it, which must be one about the input."""
    with pytest.raises(InvalidInput) as refused:
        read_all(path, **options)
    assert refused.value.violations
    assert str(path.parent) not in refused.value.message
    return refused.value


def check_refused(path: Path, location: str, message: str, **options: object) -> None:
    """Check that a set is refused as invalid at a place of it, for this reason."""
    error = refusal(path, **options)
    assert type(error) is InvalidDataset
    assert error.violations[0].location == f"calibration{location}"
    assert message in error.violations[0].message


def check_mutations(
    path: Path,
    *,
    step: int,
    times: int,
    end: int | None = None,
    check: Callable[..., object] = lambda *_: None,
    **options: object,
) -> None:
    """Cut a file off, where it is refused, and change it, where it may be read as ``check`` allows.

    It is cut at each ``step`` up to ``end``; a change replaces up to 8 bytes by up to 8 others.
    """
    whole = path.read_bytes()
    for size in range(5, len(whole) if end is None else end, step):
        path.write_bytes(whole[:size])
        refusal(path, **options)
    rng = np.random.default_rng(0)
    for _ in range(times):
        at, removed, added = rng.integers([len(whole), 9, 9])
        path.write_bytes(whole[:at] + rng.bytes(added) + whole[at + removed :])
        try:
            arrays, labels = read_all(path, **options)
        except InvalidInput as error:
            assert error.violations  # noqa: PT017 - either outcome is right, any other exception wrong
        else:
            check(arrays, labels)


def read_to_its_end(path: Path, reading: Reading = AS_IT_IS) -> None:
    """Read a set within limits like those of a small service."""
    limits = DatasetLimits(max_samples=1_000_000, max_classes=10_000, max_inflated_bytes=2**28)
    with open_dataset(path, location="calibration", limits=limits, reading=reading) as dataset:
        for _ in dataset.batches(64):
            pass
