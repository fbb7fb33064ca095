"""The failures that the OpenAPI document promises, one entry a status."""

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
    """Return the headers of a failure; none where no quota is used up."""
    if not isinstance(error, TooManyRequests) or error.quota is None:
        return {}
    quota, name = error.quota, f'"{error.quota.name}"'
    return {
        POLICY: f"{name};{_amount(quota)}",
        REMAINING: f"{name};r=0;t={error.retry_after}",
    }


def _amount(quota: Quota) -> str:
    # What is counted at a time and not in a time has no window.
    unit = f"w={quota.seconds}" if quota.seconds else 'qu="concurrent-requests"'
    return f"q={quota.amount};{unit}"


MEDIA_TYPE = "application/problem+json"
CHALLENGE = 'Bearer realm="howsure"'
# Of the Open Inference Protocol.
PREFIX = "/v2"
# The protocol knows fewer statuses; a model that is not ready is unavailable.
OIP_STATUS = {
    HTTPStatus.UNPROCESSABLE_ENTITY: HTTPStatus.BAD_REQUEST,
    HTTPStatus.CONFLICT: HTTPStatus.SERVICE_UNAVAILABLE,
}
# Where a scope's state holds the name of its failure: ``request.state.failure``.
FAILURE = "failure"
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
    """One broken rule and where it is."""

    location: str = Field(
        examples=["calibration.labels[17]"], description="Part, array, row or field at fault."
    )
    message: str = Field(
        examples=["expected an integer from 0 to 9, got 10"], description="What was expected."
    )
    rule: ModelRule | None = Field(
        None,
        examples=["too-many-nodes"],
        description="Which rule for ONNX models it is, if it is one: stable, for programs.",
    )


class Problem(BaseModel):
    """What every failed request is answered with."""

    type: str = Field(
        examples=["urn:howsure:problem:invalid-dataset"], description="Stable; for programs."
    )
    title: str = Field(examples=["Invalid dataset"], description="The same for a reader.")
    status: int = Field(examples=[422], description="The HTTP status.")
    detail: str = Field(description="What happened, in a sentence.")
    errors: list[ProblemDetail] = Field([], description="Each broken rule, if it was one.")
    request_id: str = Field(
        examples=["6f1c0a9b7d2e0000002a"],
        description="What the request is called, as in `X-Request-Id` and in the log.",
    )


def status_of(error: ServiceError) -> HTTPStatus:
    """Return the status of the nearest ancestor that has one."""
    for ancestor in type(error).__mro__:
        if ancestor in STATUS:
            return STATUS[ancestor]
    return HTTPStatus.INTERNAL_SERVER_ERROR


def is_of_protocol(path: str) -> bool:
    """Tell whether a path is of the Open Inference Protocol, which has failures of its own."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def problem_response(path: str, error: Exception, request_id: bytes = b"") -> HttpResponse:
    """Render a failure: below ``/v2`` as the protocol has it, elsewhere as a problem.

    Parameters
    ----------
    path : str
        As far as it is known; the query may follow.
    error : Exception
    request_id : bytes
        Empty where the request has none yet.
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
    """Return the stable name of a failure, for the metrics and the log."""
    return str(_status_and_problem(error)[1]["type"]).rpartition(":")[2]


def problem_on_page(scope: Scope, error: Exception) -> tuple[int, dict[str, object]]:
    """Return the status and the problem of an error that a page shows among other things."""
    status, found = _status_and_problem(error)
    state = scope.setdefault("state", {})
    state[FAILURE] = failure_of(error)
    return int(status), found | {"request_id": state.get(REQUEST_ID, "")}


def error_response(scope: Scope, error: Exception) -> Response:
    """Return the failure of a request to an ASGI app, and let the metrics know which it is."""
    state = scope.setdefault("state", {})
    state[FAILURE] = failure_of(error)
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    answer = problem_response(path, error, state.get(REQUEST_ID, "").encode())
    response = Response(answer.body, answer.status)
    response.raw_headers += answer.headers
    return response


def install(app: FastAPI) -> None:
    """Answer every failure of ``app`` with a problem."""
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
            sentence = "The database does not answer; try again."
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
        # The router names those of the first route alone.
        more["allow"] = ", ".join(sorted(declared_methods(path)))
    return [(name.encode(), value.encode()) for name, value in more.items()]


async def _failed(request: Request, error: Exception) -> Response:
    return error_response(request.scope, error)


async def _database_unavailable(request: Request, error: Exception) -> Response:
    log.error("database_unavailable", error=type(error).__name__)
    return error_response(request.scope, error)


async def _client_left(request: Request, _: Exception) -> Response:
    log.info("client_left", path=request.url.path)
    request.state.failure = "client-left"
    # Nobody reads it; what the request left on disk is gone by now.
    return Response(status_code=HTTPStatus.BAD_REQUEST)


async def _unexpected(request: Request, error: Exception) -> Response:
    log.error("unexpected_error", path=request.url.path, exc_info=error)
    response = error_response(request.scope, error)
    response.headers["Connection"] = "close"  # which the server does where it sees an exception
    return response


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
_OF_PROTOCOL = {
    400: "The request breaks a rule.",
    404: "There is no such model or version.",
    415: "The body is encoded otherwise than by gzip or deflate.",
    503: "Not now; or the calibration has not succeeded.",
}


def _entry(status: int) -> dict[str, Any]:
    return {
        "description": _MEANING[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the entries of a route that can fail in these ways; 503 is always one of them."""
    return {status: _entry(status) for status in sorted({*statuses, 503})}


def protocol_failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the same for a route of the Open Inference Protocol."""
    return {
        status: {"description": _OF_PROTOCOL.get(status, _MEANING[status]), "model": OipError}
        for status in sorted({*statuses, 503})
    }


SCHEMAS = {"Problem": Problem.model_json_schema(ref_template="#/components/schemas/{model}")}
