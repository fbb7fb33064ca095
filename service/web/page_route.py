"""Routes of pages, and the values that every page reads from its request."""

import uuid
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from service.access.api_keys import CALLER, Caller
from service.errors import Conflict, NotFound
from service.http.negotiation import prefers_html
from service.http.services import services_of
from service.http.worker_threads import Lane
from service.storage.calibrations import CalibrationRepository
from service.workspace import Workspace

Page: TypeAlias = Callable[[Request], Response]
Form: TypeAlias = Callable[[Request], Awaitable[Response]]


def workspace_of(request: Request) -> Workspace:
    """Return the workspace of the service."""
    workspace: Workspace = request.app.state.workspace
    return workspace


def tenant_of(request: Request) -> uuid.UUID:
    """Return the tenant of the caller."""
    return _caller(request).tenant_id


def subject_of(request: Request) -> tuple[Workspace, uuid.UUID, str]:
    """Return the workspace, the tenant and the calibration that the path names."""
    return workspace_of(request), tenant_of(request), request.path_params["calibration_id"]


def meant_version(workspace: Workspace, tenant_id: uuid.UUID, name: str) -> int | None:
    """Return the version that a name stands for; None if none has succeeded."""
    with workspace.database.reading(tenant_id) as session:
        try:
            return CalibrationRepository(session, tenant_id).resolve(name).version
        except (NotFound, Conflict):
            return None


def origin_of(request: Request) -> str:
    """Return the scheme, host and port at which the browser reached the service."""
    return f"{request.url.scheme}://{request.url.netloc}"


def documents_of(request: Request) -> Lane:
    """Return the lane of documents."""
    return services_of(request.scope).lanes.documents


def may(request: Request, scope: str) -> bool:
    """Tell whether the caller has a scope: to write is to use forms, to read is to see bins."""
    return scope in _caller(request).scopes


def needs_key(request: Request) -> bool:
    """Tell whether programs must send an API key."""
    return _caller(request).key_id is not None


def _caller(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


def in_lane(page: Page) -> Form:
    """Run a page of results in the lane of documents, so that tenants take turns."""

    async def run(request: Request) -> Response:
        return await documents_of(request).run(tenant_of(request), page, request)

    return run


class PageRoute(Route):
    """The route of a page: without HEAD, as all routes of this service."""

    def __init__(self, path: str, endpoint: Page | Form, *, method: str = "GET") -> None:
        super().__init__(path, endpoint, methods=[method])
        self.methods = {method}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Tell whether a request is for this page, and name the route for the metrics."""
        match, found = super().matches(scope)
        return match, found if match is Match.NONE else {**found, "route": self}


class SharedRoute(PageRoute):
    """A page at an address of the API; requests for JSON, CSV or Markdown pass it by."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Tell whether a browser requests the page."""
        is_for_people = scope["type"] == "http" and prefers_html(scope)
        if not is_for_people or b"format=" in scope["query_string"]:
            return Match.NONE, {}
        return super().matches(scope)
