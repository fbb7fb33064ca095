"""Errors as HTTP responses, and their entries in the OpenAPI document."""

from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, Field
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from service import errors
from service.access.route_table import declared_methods
from service.errors import (
    ModelRule,
    Quota,
    ServiceError,
    TooManyRequests,
    Violation,
    problem,
    problem_of,
)
from service.http.prediction_exchange import HttpResponse
from service.http.response_head import REQUEST_ID, new_id
from service.predictions.oip_schemas import OipError

POLICY, REMAINING = "ratelimit-policy", "ratelimit"


def quota_headers(error: Exception) -> dict[str, str]:
    """Return the rate limit headers of an error; none unless a quota is used up."""
    if not isinstance(error, TooManyRequests) or error.quota is None:
        return {}
    quota, name = error.quota, f'"{error.quota.name}"'
    return {
        POLICY: f"{name};{_amount(quota)}",
        REMAINING: f"{name};r=0;t={error.retry_after}",
    }


def _amount(quota: Quota) -> str:
    # A limit on concurrent jobs has no window.
    unit = f"w={quota.seconds}" if quota.seconds else 'qu="concurrent-requests"'
    return f"q={quota.amount};{unit}"


MEDIA_TYPE = "application/problem+json"
CHALLENGE = 'Bearer realm="howsure"'
# Path prefix of the Open Inference Protocol.
PREFIX = "/v2"
# The protocol has fewer statuses. A model that is not ready is unavailable.
OIP_STATUS = {
    HTTPStatus.UNPROCESSABLE_ENTITY: HTTPStatus.BAD_REQUEST,
    HTTPStatus.CONFLICT: HTTPStatus.SERVICE_UNAVAILABLE,
}
# Key of the failure's name in a scope's state.
FAILURE = "failure"
CLIENT_LEFT = 499
RETRY_AFTER_SECONDS = 5
WORTH_RETRYING = frozenset(
    {
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INSUFFICIENT_STORAGE,
    }
)
STATUS: dict[type[ServiceError], HTTPStatus] = {
    errors.InvalidInput: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.MalformedRequest: HTTPStatus.BAD_REQUEST,
    errors.UnsupportedFormat: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    errors.NotAcceptable: HTTPStatus.NOT_ACCEPTABLE,
    errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.HeadersTooLarge: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    errors.RequestTimeout: HTTPStatus.REQUEST_TIMEOUT,
    errors.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.MethodNotAllowed: HTTPStatus.METHOD_NOT_ALLOWED,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.Overloaded: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.TooManyRequests: HTTPStatus.TOO_MANY_REQUESTS,
    errors.StorageFull: HTTPStatus.INSUFFICIENT_STORAGE,
    errors.InferenceFailed: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.DeadlineExceeded: HTTPStatus.GATEWAY_TIMEOUT,
}

_NO_JSON = errors.MalformedRequest.at("body", "expected a JSON object, as UTF-8")

log = structlog.get_logger(__name__)


class ProblemDetail(BaseModel):
    """One broken rule and its location."""

    location: str = Field(
        examples=["calibration.labels[17]"], description="The invalid part, array, row or field."
    )
    message: str = Field(
        examples=["expected an integer from 0 to 9, got 10"], description="What was expected."
    )
    rule: ModelRule | None = Field(
        None,
        examples=["too-many-nodes"],
        description="Stable name of the rule, for rules of ONNX models.",
    )


class Problem(BaseModel):
    """The body of every failed request."""

    type: str = Field(
        examples=["urn:howsure:problem:invalid-dataset"], description="Stable name, for programs."
    )
    title: str = Field(examples=["Invalid dataset"], description="The name for people.")
    status: int = Field(examples=[422], description="The HTTP status.")
    detail: str = Field(description="The error in a sentence.")
    errors: list[ProblemDetail] = Field([], description="The broken rules, if any.")
    request_id: str = Field(
        examples=["6f1c0a9b7d2e0000002a"],
        description="Id of the request, as in `X-Request-Id` and in the log.",
    )


def status_of(error: ServiceError) -> HTTPStatus:
    """Return the status of the nearest ancestor that has one."""
    for ancestor in type(error).__mro__:
        if ancestor in STATUS:
            return STATUS[ancestor]
    return HTTPStatus.INTERNAL_SERVER_ERROR


def is_of_protocol(path: str) -> bool:
    """Tell whether a path belongs to the Open Inference Protocol, which has its own errors."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def problem_response(path: str, error: Exception, request_id: bytes = b"") -> HttpResponse:
    """Render an error: below ``/v2`` in the protocol's format, elsewhere as a problem.

    Parameters
    ----------
    path : str
        As far as it is known; a query may follow.
    error : Exception
    request_id : bytes
        Empty if the request has none yet.
    """
    request_id = request_id or new_id()
    status, found = _status_and_problem(error)
    headers = _headers(error, status, path)
    if is_of_protocol(path.partition("?")[0]):
        body = msgspec.json.encode({"error": found["detail"]})
        status, media_type = OIP_STATUS.get(status, status), "application/json"
    else:
        named = {"status": int(status), "request_id": request_id.decode()}
        body, media_type = msgspec.json.encode(found | named), MEDIA_TYPE
    return HttpResponse(
        status, body, [(b"content-type", media_type.encode()), *headers], request_id
    )


def failure_of(error: Exception) -> str:
    """Return the stable name of an error, for metrics and log."""
    return str(_status_and_problem(error)[1]["type"]).rpartition(":")[2]


def problem_on_page(scope: Scope, error: Exception) -> tuple[int, dict[str, object]]:
    """Return status and problem of an error that a page shows beside other content."""
    status, found = _status_and_problem(error)
    state = scope.setdefault("state", {})
    state[FAILURE] = failure_of(error)
    return int(status), found | {"request_id": state.get(REQUEST_ID, "")}


def error_response(scope: Scope, error: Exception) -> Response:
    """Return the response to an error in an ASGI app, and name the error for the metrics."""
    state = scope.setdefault("state", {})
    state[FAILURE] = failure_of(error)
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    answer = problem_response(path, error, state.get(REQUEST_ID, "").encode())
    response = Response(answer.body, answer.status)
    response.raw_headers += answer.headers
    return response


def install(app: FastAPI) -> None:
    """Respond to every error of ``app`` with a problem."""
    for kind in (ServiceError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _failed)
    app.add_exception_handler(OperationalError, _database_unavailable)
    app.add_exception_handler(ClientDisconnect, _client_left)
    app.add_exception_handler(Exception, _unexpected)


def _status_and_problem(error: Exception) -> tuple[HTTPStatus, dict[str, object]]:
    match error:
        case ServiceError():
            return status_of(error), problem_of(error)
        case RequestValidationError():
            return _status_and_problem(_invalid_input(error))
        case HTTPException():
            status = HTTPStatus(error.status_code)
            code = status.phrase.lower().replace(" ", "-")
            return status, problem(code, status.phrase, str(error.detail))
        case OperationalError():
            sentence = "The database does not respond. Retry later."
            found = problem("database-unavailable", "Database unavailable", sentence)
            return HTTPStatus.SERVICE_UNAVAILABLE, found
    return HTTPStatus.INTERNAL_SERVER_ERROR, problem_of(error)


def _invalid_input(error: RequestValidationError) -> ServiceError:
    if any(found["type"] == "json_invalid" for found in error.errors()):
        return _NO_JSON
    violations = [
        Violation(".".join(str(part) for part in found["loc"]), found["msg"])
        for found in error.errors()
    ]
    sentence = "; ".join(f"{v.location}: {v.message}" for v in violations[:3])
    return errors.InvalidInput(sentence, violations)


def _headers(error: Exception, status: HTTPStatus, path: str) -> list[tuple[bytes, bytes]]:
    more = quota_headers(error)
    if status in WORTH_RETRYING:
        seconds = error.retry_after if isinstance(error, errors.Overloaded) else RETRY_AFTER_SECONDS
        more["retry-after"] = str(seconds)
    if status == HTTPStatus.UNAUTHORIZED:
        more["www-authenticate"] = CHALLENGE
    if isinstance(error, HTTPException):
        more |= {name.lower(): value for name, value in (error.headers or {}).items()}
    if isinstance(error, errors.MethodNotAllowed):
        more["allow"] = error.allowed
    elif status == HTTPStatus.METHOD_NOT_ALLOWED:
        # The router names only the methods of the first route.
        more["allow"] = ", ".join(sorted(declared_methods(path)))
    return [(name.encode(), value.encode()) for name, value in more.items()]


async def _failed(request: Request, error: Exception) -> Response:
    return error_response(request.scope, error)


async def _database_unavailable(request: Request, error: Exception) -> Response:
    log.error("database_unavailable", error=type(error).__name__)
    return error_response(request.scope, error)


async def _client_left(_request: Request, _: Exception) -> Response:
    # Nobody reads it; the files of the request are already removed.
    return Response(status_code=CLIENT_LEFT)


async def _unexpected(request: Request, error: Exception) -> Response:
    log.error("unexpected_error", path=request.url.path, exc_info=error)
    response = error_response(request.scope, error)
    response.headers["Connection"] = "close"  # as servers do after an exception
    return response


_MEANING = {
    400: "The request cannot be read.",
    404: "The object does not exist.",
    406: "No format in `Accept` is offered.",
    408: "The body arrived too slowly.",
    409: "The state of the object does not allow this.",
    413: "A size is above its limit.",
    415: "The media type or file format is not supported.",
    422: "A rule is broken; `errors` says which one and where.",
    429: "A limit is reached; retry after `Retry-After` seconds.",
    503: "Unavailable; retry after `Retry-After` seconds.",
    504: "The request or the ONNX model took too long.",
    507: "The storage is full.",
}
_OF_PROTOCOL = {
    400: "The request breaks a rule.",
    404: "There is no such model or version.",
    415: "The encoding of the body is neither gzip nor deflate.",
    503: "Unavailable, or the calibration has not succeeded.",
}


def _entry(status: int) -> dict[str, Any]:
    return {
        "description": _MEANING[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the entries for errors of a route; 503 is always included."""
    return {status: _entry(status) for status in sorted({*statuses, 503})}


def protocol_failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the same for a route of the Open Inference Protocol."""
    return {
        status: {"description": _OF_PROTOCOL.get(status, _MEANING[status]), "model": OipError}
        for status in sorted({*statuses, 503})
    }
