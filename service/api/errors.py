"""From exceptions to ``application/problem+json`` (RFC 9457); the one place that knows statuses."""

from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from service import errors
from service.api.access.route_scopes import declared_methods
from service.api.quota_headers import quota_headers
from service.api.request_id import REQUEST_ID
from service.errors import ServiceError, Violation
from service.model_rules import ModelRule
from service.operations.problem import problem, problem_of

MEDIA_TYPE = "application/problem+json"
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


def retry_after(error: Exception) -> int:
    """Return after how many seconds the same request may succeed."""
    return error.retry_after if isinstance(error, errors.Overloaded) else RETRY_AFTER_SECONDS


def problem_response(request: Request, status: int, found: dict[str, object]) -> JSONResponse:
    """Render one problem, and let the metrics know which it is."""
    request.state.failure = str(found["type"]).rpartition(":")[2]
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if status in WORTH_RETRYING else None
    named = {"status": int(status), "request_id": getattr(request.state, REQUEST_ID, "")}
    return JSONResponse(found | named, status_code=status, headers=headers, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Answer every failure of ``app`` with a problem."""
    app.add_exception_handler(ServiceError, _service_error)
    app.add_exception_handler(RequestValidationError, _request_validation)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(OperationalError, _database_unavailable)
    app.add_exception_handler(ClientDisconnect, _client_left)
    app.add_exception_handler(Exception, _unexpected)


async def _service_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)  # noqa: S101 - the registration above says so
    response = problem_response(request, status_of(error), problem_of(error))
    if "retry-after" in response.headers:
        response.headers["retry-after"] = str(retry_after(error))
    response.headers.update(quota_headers(error))
    return response


async def _request_validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - as above
    if any(found["type"] == "json_invalid" for found in error.errors()):
        return await _service_error(request, _NO_JSON)
    violations = [
        Violation(".".join(str(part) for part in found["loc"]), found["msg"])
        for found in error.errors()
    ]
    return problem_response(
        request,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        problem(
            "invalid-input",
            "Invalid input",
            "; ".join(f"{v.location}: {v.message}" for v in violations[:3]),
            violations,
        ),
    )


async def _http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - as above
    status = HTTPStatus(error.status_code)
    if status == HTTPStatus.BAD_REQUEST:  # what the framework says of text that is no UTF-8
        return await _service_error(request, _NO_JSON)
    response = problem_response(
        request,
        status,
        problem(status.phrase.lower().replace(" ", "-"), status.phrase, str(error.detail)),
    )
    response.headers.update(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        # The router names those of the first route alone.
        path: str = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        response.headers["Allow"] = ", ".join(sorted(declared_methods(path)))
    return response


async def _database_unavailable(request: Request, error: Exception) -> JSONResponse:
    log.error("database_unavailable", error=type(error).__name__)
    return problem_response(
        request,
        HTTPStatus.SERVICE_UNAVAILABLE,
        problem(
            "database-unavailable",
            "Database unavailable",
            "The database does not answer; try again.",
        ),
    )


async def _client_left(request: Request, _: Exception) -> Response:
    log.info("client_left", path=request.url.path)
    request.state.failure = "client-left"
    # Nobody reads it; what the request left on disk is gone by now.
    return Response(status_code=HTTPStatus.BAD_REQUEST)


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("unexpected_error", path=request.url.path, exc_info=error)
    response = problem_response(request, HTTPStatus.INTERNAL_SERVER_ERROR, problem_of(error))
    response.headers["Connection"] = "close"  # which the server does where it sees an exception
    return response
