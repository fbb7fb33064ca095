"""``application/x-npz``: arrays by name, as numpy.savez writes them."""

from collections.abc import Mapping
from contextlib import closing
from io import BytesIO

import numpy as np

from service.bodies.claims import PLACE, as_input, check_claims
from service.bodies.limits import BodyLimits
from service.bodies.parameter import required
from service.bodies.request import Array, PredictRequest
from service.datasets.limits import DatasetLimits
from service.datasets.npy_header import NpyHeader, read_npy_header
from service.datasets.supplied import SUPPLIED_PREFIX, supplied_names
from service.datasets.zip_archive import ZipArchive
from service.datasets.zip_kind import is_zip
from service.errors import InvalidInput, MalformedRequest


def read_npz_body(body: bytes, *, calibration: str | None, limits: BodyLimits) -> PredictRequest:
    """Return the arrays; columns ``uncertainty_<name>`` are supplied uncertainties.

    What all of them inflate to may be as long as a body may.

    Raises
    ------
    MalformedRequest
        If this is no .npz file.
    InvalidInput
        If no calibration is named, there are no arrays, or one of a kind that is not read.
    TooLarge
        If there are more rows or bytes than is allowed.
    """
    reference = required(calibration)
    if not is_zip(body):
        raise MalformedRequest.at(PLACE, "expected an .npz archive, as numpy.savez writes it")
    bounded = DatasetLimits(max_inflated_bytes=limits.max_bytes)
    with (
        as_input(),
        closing(ZipArchive(BytesIO(body), location=PLACE, limits=bounded)) as archive,
    ):
        headers = _headers(archive, max_rows=limits.max_rows)
        columns = {
            f"{SUPPLIED_PREFIX}{name}": name for name in supplied_names(headers, location=PLACE)
        }
        arrays = {name: _read(archive, name, header) for name, header in headers.items()}
    return PredictRequest(
        reference,
        {name: array for name, array in arrays.items() if name not in columns},
        {columns[name]: array for name, array in arrays.items() if name in columns},
    )


def _headers(archive: ZipArchive, *, max_rows: int) -> Mapping[str, NpyHeader]:
    """Return what all the arrays claim, checked before any of them is read."""
    if not archive.sizes:
        raise InvalidInput.at(PLACE, "expected at least one array, got none")
    headers = {}
    for name, size in archive.sizes.items():
        place = f"{PLACE}.{name}"
        with closing(archive.open(name)) as stream:
            headers[name] = read_npy_header(stream, place=place)
        check_claims(headers[name], size=size, place=place, max_rows=max_rows)
    return headers


def _read(archive: ZipArchive, name: str, header: NpyHeader) -> Array:
    values: Array = np.empty(header.shape, header.dtype)
    with closing(archive.open(name)) as stream:
        stream.read(header.header_bytes)
        stream.read_into(values.reshape(-1).view(np.uint8))
    return values.astype(header.dtype.newbyteorder("="), copy=False)
