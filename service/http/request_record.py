"""The record of each request: its id, standard response headers, metrics and log line."""

import time
from collections.abc import Callable
from http import HTTPMethod, HTTPStatus
from typing import Literal, TypeAlias

import structlog
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.access.api_keys import CALLER, Caller
from service.http.problems import CLIENT_LEFT, FAILURE
from service.http.response_head import HEADER, REQUEST_ID, accepted_id, completed, new_id
from service.metrics.metrics import Metrics

LoggedRequests: TypeAlias = Literal["none", "failures", "all"]
# Stands for unknown methods and routes.
OTHER = "other"
# Failures are cheap to cause. Beyond this rate they are counted but not logged.
MOST_A_SECOND = 20
_LEAST = {"none": 1000, "failures": int(HTTPStatus.BAD_REQUEST), "all": 0}

log = structlog.get_logger(__name__)


class RequestLog:
    """Logs requests and their results, without received paths, headers or bodies.

    Parameters
    ----------
    which : {"none", "failures", "all"}
        Failures are responses of 400 and above, and clients that left.
    """

    def __init__(self, which: LoggedRequests) -> None:
        self._least = _LEAST[which]
        self._is_bounded = which == "failures"
        self._second = 0
        self._written = 0
        self._left_out = 0

    def answered(
        self,
        method: str,
        route: str,
        *,
        status: int,
        seconds: float,
        request_id: str,
        caller: Caller | None,
        failure: str | None,
    ) -> None:
        """Log a request; ``route`` is the path template."""
        if status < self._least or (self._is_bounded and not self._has_room()):
            return
        write = log.warning if status >= HTTPStatus.INTERNAL_SERVER_ERROR else log.info
        found = {"method": method, "route": route, "status": int(status)}
        found |= {"seconds": round(seconds, 6), "request_id": request_id}
        if failure is not None:
            found["failure"] = failure
        if caller is not None:
            found |= {"key": caller.key_id, "tenant": str(caller.tenant_id)}
        if self._left_out:
            found["left_out"] = self._left_out
            self._left_out = 0
        write("request", **found)

    def _has_room(self) -> bool:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._written = second, 0
        self._written += 1
        if self._written > MOST_A_SECOND:
            self._left_out += 1
            return False
        return True


# Key of a scope's state: the status of a failure that was replaced by a page or a redirect.
STATUS = "status"


class RequestRecord:
    """The outermost ASGI app: it passes requests on and completes responses."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, request_log: RequestLog) -> None:
        self._app = app
        self._requests = metrics.requests
        self._log = request_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on and count its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = [value for name, value in scope["headers"] if name == HEADER]
        request_id = (accepted_id(sent[0]) if len(sent) == 1 else b"") or new_id()
        state = scope.setdefault("state", {})
        state[REQUEST_ID] = request_id.decode()
        # Each request has its own task, so all its log lines get the id.
        structlog.contextvars.bind_contextvars(request_id=request_id.decode())
        status, started = CLIENT_LEFT, time.perf_counter()

        async def complete(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = [pair for pair in message.get("headers", ()) if pair[0] != HEADER]
                message = {**message, "headers": [*completed(given), (HEADER, request_id)]}
            await send(message)

        try:
            await self._app(scope, receive, complete)
        except Exception:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            state[FAILURE] = "internal-error"
            raise
        finally:
            self._count(scope, state.get(STATUS, status), time.perf_counter() - started)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        state = scope["state"]
        method, route = _method(scope), _route(scope)
        failure = _failure(status, state.get(FAILURE))
        self._requests.answered(method, route, status=status, seconds=seconds, failure=failure)
        self._log.answered(
            method,
            route,
            status=status,
            seconds=seconds,
            request_id=state[REQUEST_ID],
            caller=scope.get(CALLER),
            failure=failure,
        )


def install(
    app: FastAPI,
    *,
    metrics: Metrics,
    request_log: RequestLog,
    inside: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> None:
    """Wrap ``app`` in a layer ``inside`` and in a `RequestRecord`.

    Both are outside the handler of unexpected errors, where FastAPI allows no middleware.
    """
    build = app.build_middleware_stack
    app.build_middleware_stack = lambda: RequestRecord(  # type: ignore[method-assign]  # see above
        inside(build()), metrics=metrics, request_log=request_log
    )


def _method(scope: Scope) -> str:
    """Return the method, or `OTHER` for an unknown one: callers may send any word."""
    method = scope["method"]
    return method if method in HTTPMethod.__members__ else OTHER


def _route(scope: Scope) -> str:
    """Return the path template, which bounds the number of routes."""
    route = scope.get("route")
    return getattr(route, "path", OTHER)


def _failure(status: int, reason: str | None) -> str | None:
    if status == CLIENT_LEFT:
        return "client-left"
    if status < HTTPStatus.BAD_REQUEST:
        return None
    return reason or HTTPStatus(status).phrase.lower().replace(" ", "-")
