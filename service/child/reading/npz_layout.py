"""What the arrays of an .npz archive are: labels, inputs or outputs, supplied columns."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from service.child.reading.checks import (
    SUPPLIED_PREFIX,
    check_n_classes,
    check_n_samples,
    check_sizes,
    supplied_names,
)
from service.child.reading.npy_header import NpyHeader
from service.errors import InvalidDataset, TooLarge
from service.runner.messages.dataset import MAX_ARRAYS, ArrayInfo, DatasetInfo, DatasetKind
from service.runner.messages.reading import SetContext

LABELS = "labels"
MATRIX_RANK = 2

_OUTPUTS: tuple[Literal["logits", "probabilities"], ...] = ("logits", "probabilities")


def npz_layout(headers: Mapping[str, NpyHeader], ctx: SetContext) -> DatasetInfo:
    """Return what the arrays hold, by their names, shapes and dtypes alone.

    Raises
    ------
    InvalidDataset
        If labels are required and missing, or no integers, arrays differ in length, inputs and
        outputs are mixed, or a supplied column has no proper name.
    TooLarge
        If there are more samples, classes, supplied columns or bytes a row than is allowed.
    """
    labelled = ctx.labels_required or LABELS in headers
    if labelled:
        _check_labels_header(headers, ctx)
    supplied = supplied_names(headers, location=ctx.location)
    data = [n for n in headers if n != LABELS and not n.startswith(SUPPLIED_PREFIX)]
    if len(data) > MAX_ARRAYS:
        raise TooLarge.at(ctx.location, f"expected at most {MAX_ARRAYS} arrays, got {len(data)}")
    kind = _kind(data, ctx)
    counted = LABELS if labelled else data[0]
    n_samples = headers[counted].n_rows
    check_n_samples(n_samples, place=ctx.place(counted), limits=ctx.limits)
    for name, header in headers.items():
        if header.n_rows != n_samples:
            raise ctx.invalid(
                f"expected {n_samples} rows, as many as `{counted}` has, got {header.n_rows}", name
            )
        if name.startswith(SUPPLIED_PREFIX):
            _check_supplied_header(header, name, ctx)
    n_classes = None
    if kind != "inputs":
        _check_outputs_header(headers[kind], kind, ctx)
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
    check_sizes(info, ctx)
    return info


def _kind(data: Sequence[str], ctx: SetContext) -> DatasetKind:
    outputs = [name for name in _OUTPUTS if name in data]
    if not data:
        raise ctx.invalid(
            "expected the model's inputs by name (or `inputs`), or `logits`, or `probabilities`, "
            "got none of them"
        )
    if not outputs:
        return "inputs"
    if len(data) > 1:
        names = ", ".join(f"`{name}`" for name in data)
        raise ctx.invalid(
            f"expected inputs or `logits` or `probabilities`, and one of them alone, got {names}"
        )
    return outputs[0]


def _check_labels_header(headers: Mapping[str, NpyHeader], ctx: SetContext) -> None:
    if LABELS not in headers:
        found = ", ".join(f"`{name}`" for name in list(headers)[:10]) or "no array"
        raise ctx.invalid(
            f"expected an array `{LABELS}` with the class of each sample, got {found}", LABELS
        )
    check_label_header(headers[LABELS], place=ctx.place(LABELS))


def check_label_header(header: NpyHeader, *, place: str) -> None:
    """Refuse labels that are not one integer per sample."""
    if len(header.shape) > 1:
        fix = "labels.ravel()" if header.shape[1:] == (1,) else "labels.argmax(axis=1), if one-hot"
        raise InvalidDataset.at(
            place, f"expected one class index per sample, got shape {header.shape}; write {fix}"
        )
    if not np.issubdtype(header.dtype, np.integer):
        raise InvalidDataset.at(
            place, f"expected integers, got {header.dtype.name}; write labels.astype('int64')"
        )


def _check_supplied_header(header: NpyHeader, name: str, ctx: SetContext) -> None:
    if len(header.shape) > 1 or not np.issubdtype(header.dtype, np.floating):
        raise ctx.invalid(
            f"expected one float per sample, got {header.dtype.name} of shape {header.shape}", name
        )


def _check_outputs_header(header: NpyHeader, kind: str, ctx: SetContext) -> None:
    if len(header.shape) != MATRIX_RANK:
        raise ctx.invalid(
            f"expected shape (samples, classes), got {header.shape}; write a row per sample", kind
        )
    if not np.issubdtype(header.dtype, np.floating):
        raise ctx.invalid(
            f"expected floats, got {header.dtype.name}; write .astype('float32')", kind
        )
    check_n_classes(header.shape[1], place=ctx.place(kind), limits=ctx.limits)
