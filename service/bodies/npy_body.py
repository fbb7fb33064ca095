"""``application/x-npy``: the model's only input as numpy.save writes it."""

from io import BytesIO

import numpy as np

from service.bodies.claims import PLACE, as_input, check_claims
from service.bodies.limits import BodyLimits
from service.bodies.parameter import required
from service.bodies.request import ANY_INPUT, PredictRequest
from service.datasets.npy_header import MAGIC, read_npy_header
from service.datasets.zip_archive import MemberStream
from service.errors import MalformedRequest


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
        header = read_npy_header(MemberStream(BytesIO(body), len(body), PLACE), place=PLACE)
    check_claims(header, size=len(body), place=PLACE, max_rows=limits.max_rows)
    array = np.frombuffer(body, header.dtype, offset=header.header_bytes).reshape(header.shape)
    native = array.astype(header.dtype.newbyteorder("="), copy=False)
    return PredictRequest(reference, {ANY_INPUT: native})
