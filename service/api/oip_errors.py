"""Failures below ``/v2``: the same sentences, as the Open Inference Protocol has them."""

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from service.api.errors import MEDIA_TYPE
from service.api.oip_schemas import OipError

PREFIX = "/v2"
# The protocol knows fewer statuses; a model that is not ready is unavailable.
STATUS = {
    HTTPStatus.UNPROCESSABLE_ENTITY: HTTPStatus.BAD_REQUEST,
    HTTPStatus.CONFLICT: HTTPStatus.SERVICE_UNAVAILABLE,
}
_MEANING = {
    400: "The request breaks a rule.",
    404: "There is no such model or version.",
    408: "The body came too slowly.",
    413: "Something is above its limit.",
    415: "The body is encoded otherwise than by gzip or deflate.",
    429: "More waits than may; try again after `Retry-After` seconds.",
    503: "Not now; or the calibration has not succeeded.",
    504: "The request took longer than its time, or the model than it may.",
}

Handler = Callable[[Request, Exception], Awaitable[Response]]


def install(app: FastAPI) -> None:
    """Answer failures below ``/v2`` with ``{"error": …}``, in the words that they have elsewhere.

    Comes after every other handler of failures.
    """
    for kind, render in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _below_prefix(cast("Handler", render)))


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what the OpenAPI document says of a route that can fail so; always with 503."""
    return {
        status: {"description": _MEANING[status], "model": OipError}
        for status in sorted({*statuses, 503})
    }


def _below_prefix(render: Handler) -> Handler:
    async def handler(request: Request, error: Exception) -> Response:
        response = await render(request, error)
        if not _is_below(request) or response.media_type != MEDIA_TYPE:
            return response
        status = HTTPStatus(response.status_code)
        headers = {
            name: value
            for name, value in response.headers.items()
            if name not in ("content-type", "content-length")
        }
        sentence = json.loads(bytes(response.body))["detail"]
        return JSONResponse({"error": sentence}, STATUS.get(status, status), headers)

    return handler


def _is_below(request: Request) -> bool:
    path: str = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    return path == PREFIX or path.startswith(f"{PREFIX}/")
