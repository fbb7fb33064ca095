"""Bodies of arrays: ``application/x-npy`` holds a single input, ``application/x-npz`` several."""

from io import BytesIO
from typing import BinaryIO, cast

import numpy as np

from service.child.reading.arrays.npy_header import HEAD_BYTES, MAGIC, read_npy_header
from service.child.reading.arrays.numpy_files import (
    MAX_DIRECTORY_BYTES,
    directory_too_long,
    npz_arrays,
)
from service.child.reading.arrays.zip_archive import MAGIC as ZIP_MAGIC
from service.child.reading.arrays.zip_archive import is_torch
from service.child.reading.checks import SUPPLIED_PREFIX, supplied_names
from service.child.reading.set_file import LimitedReader
from service.child.requests.limits import BodyLimits
from service.child.requests.predict_request import PredictRequest
from service.child.requests.tensors import PLACE, as_input, check_shape
from service.errors import InvalidInput, MalformedRequest
from service.runner.messages.frames import Buffer
from service.runner.messages.onnx_models import ANY_INPUT


def read_npy_body(body: Buffer, limits: BodyLimits) -> PredictRequest:
    """Return the array; it is copied only to align it, or to change its order or byte order.

    Raises
    ------
    MalformedRequest
        If this is not an .npy file.
    InvalidInput
        If the array has an unsupported dtype.
    TooLarge
        If there are more rows than is allowed.
    """
    head = bytes(body[:HEAD_BYTES])
    if not head.startswith(MAGIC):
        raise MalformedRequest.at(PLACE, "expected an .npy array, as numpy.save writes it")
    with as_input():
        header = read_npy_header(head, place=PLACE)
        check_shape(header.shape, location=PLACE, max_rows=limits.max_rows)
        header.check_size(len(body), PLACE)
    array = np.frombuffer(body, header.dtype, offset=header.header_bytes)
    array = array.reshape(header.shape, order="F" if header.is_fortran else "C")
    native = array.astype(header.dtype.newbyteorder("="), "C", copy=not array.flags.aligned)
    return PredictRequest({ANY_INPUT: native})


def read_npz_body(body: bytes, limits: BodyLimits) -> PredictRequest:
    """Return the arrays; columns ``uncertainty_<name>`` are supplied uncertainties.

    Decompressed, they may have as many bytes as a body.

    Raises
    ------
    MalformedRequest
        If this is not an .npz file.
    InvalidInput
        If there are no arrays, or one has an unsupported dtype.
    TooLarge
        If there are more rows or bytes than is allowed.
    """
    if not body.startswith(ZIP_MAGIC) or is_torch(body):
        raise MalformedRequest.at(PLACE, "expected an .npz archive, as numpy.savez writes it")
    refusal = directory_too_long(PLACE)
    most = MAX_DIRECTORY_BYTES
    stream = cast("BinaryIO", LimitedReader(BytesIO(body), len(body), most=most, refusal=refusal))
    with as_input():
        files = npz_arrays(stream, location=PLACE, max_inflated_bytes=limits.max_bytes)
        if not files:
            raise InvalidInput.at(PLACE, "expected at least one array, got none")
        for file in files.values():
            check_shape(file.header.shape, location=file.place, max_rows=limits.max_rows)
            file.header.check_size(file.size, file.place)
        supplied = {f"{SUPPLIED_PREFIX}{name}" for name in supplied_names(files, location=PLACE)}
        arrays = {name: next(file.rows(limits.max_rows)) for name, file in files.items()}
    return PredictRequest(
        {name: array for name, array in arrays.items() if name not in supplied},
        {name.removeprefix(SUPPLIED_PREFIX): arrays[name] for name in arrays if name in supplied},
    )
