"""Bodies of POST /predict: one reader per media type, pure functions on bytes."""

from collections.abc import Mapping
from typing import Protocol

from service.child.requests.array_bodies import read_npy_body, read_npz_body
from service.child.requests.json_body import read_json_body
from service.child.requests.limits import BodyLimits
from service.child.requests.picture_bodies import read_multipart_body, read_picture_body
from service.child.requests.tensors import PredictRequest

__all__ = [
    "BODIES",
    "JSON",
    "MULTIPART",
    "NPY",
    "NPZ",
    "PICTURES",
    "SETS",
    "SET_ROWS",
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
# Rows of a set that another process has read, as a shard. No caller may send them.
SET_ROWS = "rows of a set"


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
}
