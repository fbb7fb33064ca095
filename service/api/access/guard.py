"""Asks for a key before anything of a request but its head is taken: plain ASGI."""

from types import SimpleNamespace

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.access.bearer import authorization
from service.api.access.route_scopes import OPEN, declared_route
from service.api.hot.refusal import refusal
from service.api.request_meter import FAILURE
from service.errors import NotFound, Overloaded, ServiceError
from service.operations.api_keys import Caller, Doorkeeper

# Where routes find who asks.
CALLER = "howsure.caller"


class Guard:
    """An ASGI app that passes on what may pass, and who asks."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] == "http":
            try:
                caller = _caller(scope)
            except ServiceError as error:
                scope.setdefault("state", {})[FAILURE] = error.code()
                await _refuse(scope, error, send)
                return
            if caller is not None:
                scope[CALLER] = caller
        await self._app(scope, receive, send)


def _caller(scope: Scope) -> Caller | None:
    """Return who asks, None where it does not matter.

    Raises
    ------
    Unauthenticated, Forbidden
        If it is nobody who may.
    NotFound
        If no such route is declared, for a caller who is known: whatever may be there, it is not
        for keys.
    """
    app = scope["app"]
    assert isinstance(app, FastAPI)  # noqa: S101 - the service itself
    doorkeeper: Doorkeeper | None = getattr(app.state, "doorkeeper", None)
    if doorkeeper is None:
        raise Overloaded("The service is starting.", retry_after=1)
    ring = doorkeeper.ring
    if ring.is_open:
        return ring.anonymous
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    found = declared_route(scope["method"], path)
    given = authorization([(name.lower(), value) for name, value in scope["headers"]])
    if found is not None:
        # What is counted is counted by route.
        scope["route"] = SimpleNamespace(path=found.path)
        return None if found.scopes == OPEN else doorkeeper.admit(given, found.scopes)
    ring.caller(given)
    raise NotFound("There is nothing at this path for this method.")


async def _refuse(scope: Scope, error: ServiceError, send: Send) -> None:
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    answer = refusal(path.encode(), error)
    length = (b"content-length", b"%d" % len(answer.body))
    start = {"type": "http.response.start", "status": int(answer.status)}
    await send(start | {"headers": [*answer.headers, length]})
    await send({"type": "http.response.body", "body": answer.body})
