"""The failures that the OpenAPI document promises, one entry a status."""

from typing import Any

from service.api.errors import MEDIA_TYPE, Problem

_MEANING = {
    400: "The request cannot be read.",
    404: "There is no such calibration.",
    409: "The calibration is not in a state that allows this.",
    413: "Something is above its limit.",
    415: "The media type or file format is not read here.",
    422: "Something breaks a rule; `errors` says where and which.",
    503: "Not now; try again after `Retry-After` seconds.",
    504: "The ONNX model took longer than it may.",
    507: "No space is left.",
}


def _entry(status: int) -> dict[str, Any]:
    return {
        "description": _MEANING[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: _entry(status) for status in (404, 409, 422, 503)
}
UPLOAD_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: _entry(status) for status in (400, 413, 415, 422, 503, 504, 507)
}
PREDICT_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: _entry(status) for status in (400, 404, 409, 413, 415, 422, 503, 504)
}
SCHEMAS = {"Problem": Problem.model_json_schema(ref_template="#/components/schemas/{model}")}
