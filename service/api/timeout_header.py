"""The header by which a client says how long a prediction may take."""

from typing import Any

TIMEOUT_HEADER: dict[str, Any] = {
    "name": "Timeout",
    "in": "header",
    "required": False,
    "description": "Seconds from the request's arrival to its answer; without one in time it is "
    "answered 504. More than `HOWSURE_PREDICT_TIMEOUT_SECONDS` counts as that.",
    "schema": {"type": "number", "exclusiveMinimum": 0},
    "example": 0.5,
}
