"""Pages as they are sent: a template, in the frame that all have."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from service.operations.api_keys import Doorkeeper
from service.operations.api_keys.page_session import SESSION, PageSession, session_cookie
from service.web import words
from service.web.assets import asset
from service.web.csrf import new_nonce, nonce_of, token_of, visit_cookie

# Scripts and styles are files of this service, and nothing is asked of another.
SECURITY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": SECURITY,
    # With none at all a browser would not say that a form is sent from here.
    "Referrer-Policy": "same-origin",
}
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals |= {"asset": asset, "version": version("howsure")}
TEMPLATES.filters |= words.FILTERS


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    whole: bool = True,
    **context: Any,  # noqa: ANN401 - whatever the template names
) -> HTMLResponse:
    """Render a template; of a part of a page, ``whole`` is false.

    A whole page keeps its reader signed in, a part that is renewed by itself does not.
    """
    nonce = nonce_of(request)
    given = nonce or new_nonce()
    session: PageSession | None = request.scope.get(SESSION)
    text = TEMPLATES.get_template(template).render(
        context | {"csrf": token_of(given), "session": session, "path": request.url.path}
    )
    response = HTMLResponse(text, status, HEADERS)
    if nonce is None:
        set_cookie(request, response, visit_cookie(request), given, max_age=None)
    renewed = None if session is None or not whole else session.renewed()
    if renewed is not None:
        set_session(request, response, renewed)
    return response


def set_session(request: Request, response: Response, session: PageSession) -> None:
    """Have the browser keep the session."""
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    name = session_cookie(secure=request.url.scheme == "https")
    value = session.written(doorkeeper.ring.session_secret)
    set_cookie(request, response, name, value, max_age=session.seconds_left())


def set_cookie(
    request: Request, response: Response, name: str, value: str, *, max_age: int | None
) -> None:
    """Set a cookie that scripts cannot read, and that other sites' forms do not send."""
    is_secure = request.url.scheme == "https"
    response.set_cookie(
        name, value, max_age=max_age, secure=is_secure, httponly=True, samesite="lax", path="/"
    )
