"""The rows of a set that came as a request."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from service.bodies.claims import as_input
from service.bodies.limits import BodyLimits
from service.bodies.request import PredictRequest
from service.datasets import DatasetInfo, DatasetLimits, Reading, open_dataset
from service.errors import TooLarge

PLACE = "body"


def set_arrays(
    request: PredictRequest, content: bytes, *, reading: Reading, limits: BodyLimits
) -> PredictRequest:
    """Return the request with the arrays of its set; labels in it are read and left out.

    Raises
    ------
    InvalidInput, UnsupportedFormat
        If it breaks a rule of sets; the violation names the row or the picture.
    TooLarge
        If there are more rows, or more bytes once they are read, than a request may have.
    """
    bounds = DatasetLimits(
        max_samples=limits.max_rows,
        max_inflated_bytes=limits.max_bytes,
        max_row_bytes=limits.max_bytes,
    )
    with (
        as_input(),
        _as_file(content) as path,
        open_dataset(
            path, location=PLACE, limits=bounds, labels_required=False, reading=reading
        ) as dataset,
    ):
        _check_size(dataset.info, limits)
        (batch,) = dataset.batches(dataset.info.n_samples)
    return replace(request, content=None, arrays=batch.arrays, supplied=batch.supplied)


def _check_size(info: DatasetInfo, limits: BodyLimits) -> None:
    n_bytes = info.row_bytes * info.n_samples
    if n_bytes > limits.max_bytes:
        raise TooLarge.at(
            PLACE,
            f"expected rows of at most {limits.max_bytes} bytes in all once they are read, got "
            f"{info.n_samples} of {info.row_bytes}; send fewer at once",
        )


@contextmanager
def _as_file(content: bytes) -> Iterator[Path]:
    """Yield a file of these bytes, in memory where there is such a thing."""
    if sys.platform != "linux":
        with tempfile.NamedTemporaryFile(prefix="howsure-") as file:
            file.write(content)
            file.flush()
            yield Path(file.name)
        return
    opened = os.memfd_create("set", os.MFD_CLOEXEC)
    try:
        with open(opened, "wb", closefd=False) as file:
            file.write(content)
        yield Path(f"/proc/self/fd/{opened}")
    finally:
        os.close(opened)
