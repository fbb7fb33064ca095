"""What a request has to be, whoever asks and for whatever: plain ASGI, inside of the guard."""

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.access.bearer import CALLER
from service.api.access.refuse import refuse
from service.api.access.route_scopes import OPEN, declared_route
from service.api.access.sites import Sites
from service.api.access.small_body import (
    LARGE_BODIES,
    MORE_BYTES,
    MOST_BYTES,
    has_body,
    received,
)
from service.api.body import encoding_refused, is_plain
from service.errors import ServiceError
from service.operations.api_keys import Caller


class RequestRules:
    """An ASGI app that passes on what is sent to it, plain and in time.

    Parameters
    ----------
    app : ASGIApp
    sites : Sites
    body_seconds : float
        From the end of the headers to that of a body, where a route needs no large one.
    """

    def __init__(self, app: ASGIApp, *, sites: Sites, body_seconds: float) -> None:
        self._app = app
        self._sites = sites
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] == "http":
            try:
                receive = await self._checked(scope, receive)
            except ServiceError as error:
                await refuse(scope, error, send)
                return
            except ClientDisconnect:
                return
        await self._app(scope, receive, send)

    async def _checked(self, scope: Scope, receive: Receive) -> Receive:
        method: str = scope["method"]
        pairs = [(name.lower(), value) for name, value in scope["headers"]]
        headers = dict(pairs)
        found = declared_route(method, scope["path"].removeprefix(scope.get("root_path", "")))
        # Of what is open to everybody nothing is to be learnt or changed.
        if found is None or found.scopes != OPEN:
            caller: Caller | None = scope.get(CALLER)
            is_open = caller is not None and caller.key_id is None
            self._sites.check(method, pairs, is_open=is_open)
        if not is_plain(headers.get(b"content-encoding")):
            raise encoding_refused()
        route = None if found is None else (method, found.path)
        if not has_body(headers) or route in LARGE_BODIES:
            return receive
        most = MOST_BYTES if route is None else MORE_BYTES.get(route, MOST_BYTES)
        return await received(receive, headers, seconds=self._body_seconds, most=most)
