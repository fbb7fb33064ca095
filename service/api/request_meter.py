"""Counts, times and logs every request: plain ASGI, around all routes."""

import time
from http import HTTPMethod, HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.access.bearer import CALLER
from service.api.request_id import REQUEST_ID
from service.api.request_log import CLIENT_LEFT, OTHER, RequestLog
from service.metrics import Metrics

# Where whoever answers a failure says its reason: ``request.state.failure``.
FAILURE = "failure"


class RequestMeter:
    """An ASGI app that passes everything on."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, request_log: RequestLog) -> None:
        self._app = app
        self._requests = metrics.requests
        self._log = request_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on and count its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = CLIENT_LEFT
        started = time.perf_counter()
        state = scope.setdefault("state", {})

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception:
            # It is answered further out.
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            state[FAILURE] = "internal-error"
            raise
        finally:
            method, route = _method(scope), _route(scope)
            seconds = time.perf_counter() - started
            failure = _failure(status, state.get(FAILURE))
            self._requests.answered(method, route, status=status, seconds=seconds, failure=failure)
            self._log.answered(
                method,
                route,
                status=status,
                seconds=seconds,
                request_id=state.get(REQUEST_ID, ""),
                caller=scope.get(CALLER),
                failure=failure,
            )


def _method(scope: Scope) -> str:
    """Return the method, of those that there are: a caller may send any word."""
    method = scope["method"]
    return method if method in HTTPMethod.__members__ else OTHER


def _route(scope: Scope) -> str:
    """Return the path as it was declared, so that there are only so many."""
    route = scope.get("route")
    return getattr(route, "path", OTHER)


def _failure(status: int, reason: str | None) -> str | None:
    if status == CLIENT_LEFT:
        return "client-left"
    if status < HTTPStatus.BAD_REQUEST:
        return None
    return reason or HTTPStatus(status).phrase.lower().replace(" ", "-")
