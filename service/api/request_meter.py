"""Counts and times every request: plain ASGI, around all routes."""

import time
from http import HTTPMethod, HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.metrics import Metrics

# Where whoever answers a failure says its reason: ``request.state.failure``.
FAILURE = "failure"
CLIENT_LEFT = 499
OTHER = "other"


class RequestMeter:
    """An ASGI app that passes everything on."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._requests = metrics.requests

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
            self._requests.answered(
                _method(scope),
                _route(scope),
                status=status,
                seconds=time.perf_counter() - started,
                failure=_failure(status, state.get(FAILURE)),
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
