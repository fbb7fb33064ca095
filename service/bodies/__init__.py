"""Bodies of POST /predict: one reader per media type, pure functions on bytes."""

from collections.abc import Mapping
from typing import Protocol

from service.bodies.json_body import read_json_body
from service.bodies.limits import BodyLimits
from service.bodies.multipart_body import read_multipart_body
from service.bodies.npy_body import read_npy_body
from service.bodies.npz_body import read_npz_body
from service.bodies.pictures_body import read_picture_body
from service.bodies.request import PredictRequest
from service.bodies.set_body import read_set_body

__all__ = [
    "BODIES",
    "JSON",
    "MULTIPART",
    "NPY",
    "NPZ",
    "PICTURES",
    "SETS",
    "BodyReader",
    "read_json_body",
]

JSON = "application/json"
NPY = "application/x-npy"
NPZ = "application/x-npz"
PICTURES = ("image/jpeg", "image/png", "image/webp")
MULTIPART = "multipart/form-data"
SETS = (
    "text/csv",
    "application/vnd.apache.parquet",
    "application/zip",
    "application/x-tar",
)


class BodyReader(Protocol):
    """Reads a body whose length is within the limit.

    ``calibration`` is the parameter of that name, which JSON, naming it itself, must not have.
    """

    def __call__(
        self, body: bytes, *, calibration: str | None, limits: BodyLimits
    ) -> PredictRequest:
        """Return the request, its arrays not yet held against a model."""


BODIES: Mapping[str, BodyReader] = {
    JSON: read_json_body,
    NPY: read_npy_body,
    NPZ: read_npz_body,
    **dict.fromkeys(PICTURES, read_picture_body),
    MULTIPART: read_multipart_body,
    **dict.fromkeys(SETS, read_set_body),
}
