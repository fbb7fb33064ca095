"""Routes of pages."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from service.web.accepted import prefers_html

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
