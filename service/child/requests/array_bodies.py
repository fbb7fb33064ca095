"""``application/x-npy``: the model's only input as numpy.save writes it."""

from collections.abc import Mapping
from contextlib import closing
from io import BytesIO
from typing import BinaryIO, cast

import numpy as np

from service.child.reading.checks import SUPPLIED_PREFIX, supplied_names
from service.child.reading.npy_header import HEAD_BYTES, MAGIC, NpyHeader, read_npy_header
from service.child.reading.numpy_files import NPZ, NpzArchive
from service.child.reading.set_file import LimitedReader
from service.child.reading.zip_archive import MAGIC as ZIP_MAGIC
from service.child.reading.zip_archive import is_torch
from service.child.requests.limits import BodyLimits, required
from service.child.requests.tensors import (
    ANY_INPUT,
    PLACE,
    Array,
    PredictRequest,
    as_input,
    check_claims,
)
from service.errors import InvalidInput, MalformedRequest


def read_npy_body(body: bytes, *, calibration: str | None, limits: BodyLimits) -> PredictRequest:
    """Return the array where it lies: nothing is copied, unless its bytes are in another order.

    Raises
    ------
    MalformedRequest
        If this is no .npy file.
    InvalidInput
        If no calibration is named, or the array is of a kind that is not read.
    TooLarge
        If there are more rows than is allowed.
    """
    reference = required(calibration)
    if not body.startswith(MAGIC):
        raise MalformedRequest.at(PLACE, "expected an .npy array, as numpy.save writes it")
    with as_input():
        header = read_npy_header(bytes(body[:HEAD_BYTES]), place=PLACE)
    check_claims(header, size=len(body), place=PLACE, max_rows=limits.max_rows)
    array = np.frombuffer(body, header.dtype, offset=header.header_bytes).reshape(header.shape)
    native = array.astype(header.dtype.newbyteorder("="), copy=False)
    return PredictRequest(reference, {ANY_INPUT: native})


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
    if not body.startswith(ZIP_MAGIC) or is_torch(body):
        raise MalformedRequest.at(PLACE, "expected an .npz archive, as numpy.savez writes it")
    most, refusal = NPZ.max_directory_bytes, NPZ.too_long(PLACE)
    stream = cast("BinaryIO", LimitedReader(BytesIO(body), len(body), most=most, refusal=refusal))
    with (
        as_input(),
        closing(NpzArchive(stream, location=PLACE, max_inflated_bytes=limits.max_bytes)) as archive,
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


def _headers(archive: NpzArchive, *, max_rows: int) -> Mapping[str, NpyHeader]:
    """Return what all the arrays claim, checked before any of them is read."""
    if not archive.sizes:
        raise InvalidInput.at(PLACE, "expected at least one array, got none")
    headers = {}
    for name, size in archive.sizes.items():
        place = f"{PLACE}.{name}"
        with closing(archive.open(name)) as stream:
            headers[name] = read_npy_header(stream.read_up_to(HEAD_BYTES), place=place)
        check_claims(headers[name], size=size, place=place, max_rows=max_rows)
    return headers


def _read(archive: NpzArchive, name: str, header: NpyHeader) -> Array:
    values: Array = np.empty(header.shape, header.dtype)
    with closing(archive.open(name)) as stream:
        stream.read(header.header_bytes)
        stream.read_into(values.reshape(-1).view(np.uint8))
    return values.astype(header.dtype.newbyteorder("="), copy=False)
