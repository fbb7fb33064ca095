"""Routes of pages."""

import uuid
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from service.access.api_keys import CALLER, PREDICT, READ, WRITE, Caller
from service.http.negotiation import prefers_html
from service.http.services import services_of
from service.reports.charts.drawing import Renderer
from service.workspace import Workspace


def workspace_of(request: Request) -> Workspace:
    """Return what operations work on."""
    workspace: Workspace = request.app.state.workspace
    return workspace


def tenant_of(request: Request) -> uuid.UUID:
    """Return whose things are shown."""
    return _caller(request).tenant_id


def charts_of(request: Request) -> Renderer:
    """Return what draws figures."""
    return services_of(request.scope).charts


def may_write(request: Request) -> bool:
    """Tell whether there is a use in forms."""
    return WRITE in _caller(request).scopes


def may_predict(request: Request) -> bool:
    """Tell whether there is a use in asking for answers."""
    return PREDICT in _caller(request).scopes


def may_read(request: Request) -> bool:
    """Tell whether bins may be shown to who asks for an answer."""
    return READ in _caller(request).scopes


def needs_key(request: Request) -> bool:
    """Tell whether programs have to send a key."""
    return _caller(request).key_id is not None


def _caller(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


Endpoint = Callable[[Request], Awaitable[Response]]


class PageRoute(Route):
    """A page: what is read is asked for by GET alone, as everywhere in this service."""

    def __init__(self, path: str, endpoint: Endpoint, *, method: str = "GET") -> None:
        super().__init__(path, endpoint, methods=[method])
        self.methods = {method}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Tell whether it is asked for; what is counted is counted by route."""
        match, found = super().matches(scope)
        return match, found if match is Match.NONE else {**found, "route": self}


class SharedRoute(PageRoute):
    """A page with an address of the API, whose route is for who reads JSON, CSV or Markdown."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Tell whether it is asked for by a person."""
        is_for_people = scope["type"] == "http" and prefers_html(scope)
        if not is_for_people or b"format=" in scope["query_string"]:
            return Match.NONE, {}
        return super().matches(scope)
