"""Media types of POST /predict, and the reader of each: pure functions on bytes."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from service.child.requests.array_bodies import read_npy_body, read_npz_body
from service.child.requests.json_body import read_json_body
from service.child.requests.limits import BodyLimits
from service.child.requests.picture_bodies import read_multipart_body, read_picture_body
from service.child.requests.predict_request import PredictRequest

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
# Rows of a set that a reader process has read, as a shard. Clients cannot send them.
SET_ROWS = "rows of a set"
# The same of a table of outputs whose columns have indices of classes, not their names.
NUMBERED_SET_ROWS = "rows of a set by index"
ROWS_OF_SETS = (SET_ROWS, NUMBERED_SET_ROWS)


# Reads a body whose length is within the limit; its arrays are not checked against a model.
BodyReader: TypeAlias = Callable[[bytes, BodyLimits], PredictRequest]

BODIES: Mapping[str, BodyReader] = {
    JSON: read_json_body,
    NPY: read_npy_body,
    NPZ: read_npz_body,
    **dict.fromkeys(PICTURES, read_picture_body),
    MULTIPART: read_multipart_body,
}
