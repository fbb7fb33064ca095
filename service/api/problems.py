"""The failures that the OpenAPI document promises, one entry a status."""

from typing import Any

from service.api.errors import MEDIA_TYPE, Problem

_MEANING = {
    400: "The request cannot be read.",
    404: "There is no such thing.",
    406: "It is offered in none of the formats that `Accept` names.",
    408: "The body came too slowly.",
    409: "Something is not in a state that allows this.",
    413: "Something is above its limit.",
    415: "The media type or file format is not read here.",
    422: "Something breaks a rule; `errors` says where and which.",
    429: "More waits than may; try again after `Retry-After` seconds.",
    503: "Not now; try again after `Retry-After` seconds.",
    504: "The request took longer than its time, or the ONNX model than it may.",
    507: "No space is left.",
}


def _entry(status: int) -> dict[str, Any]:
    return {
        "description": _MEANING[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the entries of a route that can fail in these ways; 503 is always one of them."""
    return {status: _entry(status) for status in sorted({*statuses, 503})}


SCHEMAS = {"Problem": Problem.model_json_schema(ref_template="#/components/schemas/{model}")}
