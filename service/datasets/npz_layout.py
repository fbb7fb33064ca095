"""What the arrays of an .npz archive are: labels, inputs or outputs, supplied columns."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from service.datasets.checks import check_n_classes, check_n_samples
from service.datasets.dataset import ArrayInfo, DatasetInfo, DatasetKind
from service.datasets.limits import DatasetLimits
from service.datasets.npy_header import NpyHeader
from service.datasets.supplied import SUPPLIED_PREFIX, supplied_names
from service.errors import InvalidDataset, TooLarge

LABELS = "labels"
MATRIX_RANK = 2

_OUTPUTS: tuple[Literal["logits", "probabilities"], ...] = ("logits", "probabilities")


def npz_layout(
    headers: Mapping[str, NpyHeader],
    *,
    location: str,
    limits: DatasetLimits,
    labels_required: bool,
) -> DatasetInfo:
    """Return what the arrays hold, by their names, shapes and dtypes alone.

    Raises
    ------
    InvalidDataset
        If labels are required and missing, or no integers, arrays differ in length, inputs and
        outputs are mixed, or a supplied column has no proper name.
    TooLarge
        If there are more samples, classes, supplied columns or bytes a row than is allowed.
    """
    labelled = labels_required or LABELS in headers
    if labelled:
        _check_labels_header(headers, location=location)
    supplied = supplied_names(headers, location=location)
    data = [n for n in headers if n != LABELS and not n.startswith(SUPPLIED_PREFIX)]
    kind = _kind(data, location=location)
    counted = LABELS if labelled else data[0]
    n_samples = headers[counted].n_rows
    check_n_samples(n_samples, place=f"{location}.{counted}", limits=limits)
    for name, header in headers.items():
        if header.n_rows != n_samples:
            raise InvalidDataset.at(
                f"{location}.{name}",
                f"expected {n_samples} rows, as many as `{counted}` has, got {header.n_rows}",
            )
        if name.startswith(SUPPLIED_PREFIX):
            _check_supplied_header(header, place=f"{location}.{name}")
    n_classes = None
    if kind != "inputs":
        _check_outputs_header(headers[kind], place=f"{location}.{kind}", limits=limits)
        n_classes = headers[kind].shape[1]
    info = DatasetInfo(
        kind=kind,
        format="npz",
        arrays={name: ArrayInfo(headers[name].dtype.name, headers[name].shape) for name in data},
        n_samples=n_samples,
        n_classes=n_classes,
        supplied=supplied,
        labelled=labelled,
    )
    _check_rows(info, location=location, limits=limits)
    return info


def _kind(data: Sequence[str], *, location: str) -> DatasetKind:
    outputs = [name for name in _OUTPUTS if name in data]
    if not data:
        raise InvalidDataset.at(
            location,
            "expected the model's inputs by name (or `inputs`), or `logits`, or `probabilities`, "
            "got none of them",
        )
    if not outputs:
        return "inputs"
    if len(data) > 1:
        names = ", ".join(f"`{name}`" for name in data)
        raise InvalidDataset.at(
            location,
            f"expected inputs or `logits` or `probabilities`, and one of them alone, got {names}",
        )
    return outputs[0]


def _check_labels_header(headers: Mapping[str, NpyHeader], *, location: str) -> None:
    place = f"{location}.{LABELS}"
    if LABELS not in headers:
        found = ", ".join(f"`{name}`" for name in list(headers)[:10]) or "no array"
        raise InvalidDataset.at(
            place, f"expected an array `{LABELS}` with the class of each sample, got {found}"
        )
    header = headers[LABELS]
    if len(header.shape) > 1:
        fix = "write labels.ravel()"
        if header.shape[1:] != (1,):
            fix = "where rows are one-hot write labels.argmax(axis=1)"
        raise InvalidDataset.at(
            place, f"expected one class index per sample, got shape {header.shape}; {fix}"
        )
    if not np.issubdtype(header.dtype, np.integer):
        raise InvalidDataset.at(
            place,
            f"expected integers, got {header.dtype.name}; write labels.astype('int64')",
        )


def _check_supplied_header(header: NpyHeader, *, place: str) -> None:
    if len(header.shape) > 1 or not np.issubdtype(header.dtype, np.floating):
        raise InvalidDataset.at(
            place,
            f"expected one float per sample, got {header.dtype.name} of shape {header.shape}",
        )


def _check_outputs_header(header: NpyHeader, *, place: str, limits: DatasetLimits) -> None:
    if len(header.shape) != MATRIX_RANK:
        raise InvalidDataset.at(
            place,
            f"expected shape (samples, classes), got {header.shape}; write a row per sample",
        )
    if not np.issubdtype(header.dtype, np.floating):
        raise InvalidDataset.at(
            place, f"expected floats, got {header.dtype.name}; write .astype('float32')"
        )
    check_n_classes(header.shape[1], place=place, limits=limits)


def _check_rows(info: DatasetInfo, *, location: str, limits: DatasetLimits) -> None:
    for name, array in info.arrays.items():
        if 0 in array.shape:
            raise InvalidDataset.at(
                f"{location}.{name}", f"expected values in each row, got shape {array.shape}"
            )
    if info.row_bytes > limits.max_row_bytes:
        raise TooLarge.at(
            location,
            f"expected at most {limits.max_row_bytes} bytes per sample, got {info.row_bytes}",
        )
