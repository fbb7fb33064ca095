"""Who asks for a page, and what there is to ask."""

import uuid

from starlette.requests import Request

from service.operations.api_keys.caller import CALLER, PREDICT, READ, WRITE, Caller
from service.operations.workspace import Workspace
from service.web.charts.renderer import Renderer


def workspace_of(request: Request) -> Workspace:
    """Return what operations work on."""
    workspace = request.app.state.workspace
    assert isinstance(workspace, Workspace)  # noqa: S101 - set by the composition root
    return workspace


def tenant_of(request: Request) -> uuid.UUID:
    """Return whose things are shown."""
    return _caller(request).tenant_id


def charts_of(request: Request) -> Renderer:
    """Return what draws figures."""
    charts = request.app.state.charts
    assert isinstance(charts, Renderer)  # noqa: S101 - set by the composition root
    return charts


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
    caller = request.scope[CALLER]
    assert isinstance(caller, Caller)  # noqa: S101 - set by the guard, for what is not open
    return caller
