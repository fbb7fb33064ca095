"""Asks for a key before anything of a request but its head is taken: plain ASGI."""

from types import SimpleNamespace

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.access.bearer import CALLER, authorization, peer_of
from service.api.access.page_cookie import signed_in
from service.api.access.refuse import refuse
from service.api.access.route_scopes import OPEN, declared_methods, declared_route
from service.errors import MethodNotAllowed, NotFound, Overloaded, ServiceError
from service.operations.api_keys import Caller, Doorkeeper, require_scope


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
                await refuse(scope, error, send)
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
    TooManyRequests
        If it is somebody who has sent as many as it may, or nobody again and again.
    MethodNotAllowed, NotFound
        If no such route is declared, for a caller who is known: whatever may be there, it is not
        for keys. What is open says so to everybody.
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
    peer = peer_of(scope)
    signed = None if given else signed_in(scope, path, ring)
    if found is not None:
        # What is counted is counted by route.
        scope["route"] = SimpleNamespace(path=found.path)
        if found.scopes == OPEN:
            return None
        # Known from here on, whatever it may: who is refused is written down as well.
        caller = scope[CALLER] = signed or doorkeeper.known(given, peer)
        if caller.meter.requests is not None:
            caller.meter.requests.take()
        require_scope(caller, found.scopes)
        caller.is_used = True
        return caller
    allowed = declared_methods(path)
    asks_for_keys = not allowed or any(scopes != OPEN for scopes in allowed.values())
    if asks_for_keys and signed is None:
        doorkeeper.known(given, peer)
    if allowed:
        raise MethodNotAllowed(list(allowed))
    raise NotFound("There is nothing at this path for this method.")
