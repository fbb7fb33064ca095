"""Rendering of pages."""

import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import UUID

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from howsure.report.located import present
from howsure.report.report import Subject
from howsure.statistics.measures.scale import scale_of
from service.access.api_keys import READ
from service.access.page_session import SESSION, PageSession, session_cookie
from service.http.services import services_of
from service.printable import escaped_text
from service.reports.fitness import fitness_of
from service.reports.located_html import LOCATED_FILTERS
from service.web.page_route import may, meant_version, tenant_of, workspace_of
from service.web.static_files import asset

# Scripts and styles come from this service only.
SECURITY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": SECURITY,
    # Without a referrer a browser would not send the origin of a form.
    "Referrer-Policy": "same-origin",
}


def code(text: str) -> Markup:
    """Return a message as HTML: what stands between backticks is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without a partner
        return escape(text)
    marks = (Markup("<code>{}</code>"), Markup("{}"))
    return Markup("").join(marks[at % 2 == 0].format(part) for at, part in enumerate(parts))


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    finalize=escaped_text,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals |= {"asset": asset, "version": version("howsure"), "scale_of": scale_of}
TEMPLATES.filters |= {**LOCATED_FILTERS, "code": code}
TEMPLATES.tests["present"] = present
# In text that is shown, in a piece that ends before the ">" of the next tag. What is copied, sent
# or drawn stays as it is.
_PERCENTAGE = re.compile(r"(?<=\d) %(?=[^<>]*<(?!/(?:code|option|text|textarea)\Z))")


def unbroken(html: str) -> str:
    """Return HTML in which no line breaks between a number and its percent sign.

    It goes from tag to tag: one pass over a page of megabytes would stop all other threads.
    """
    return ">".join(_PERCENTAGE.sub("&nbsp;%", piece) for piece in html.split(">"))


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a template as HTML."""
    return unbroken(TEMPLATES.get_template(template).render(context))


def page(
    request: Request,
    template: str,
    *,
    status: int = 200,
    whole: bool = True,
    **context: Any,  # noqa: ANN401 - whatever the template names
) -> HTMLResponse:
    """Render a template; ``whole`` is false for a part of a page.

    A whole page extends the session. A part does not, because pages reload parts automatically.
    """
    session: PageSession | None = request.scope.get(SESSION)
    own = {"session": session, "path": request.url.path}
    text = render(template, context | own)
    response = HTMLResponse(text, status, HEADERS)
    renewed = None if session is None or not whole else session.renewed()
    if renewed is not None:
        set_session(request, response, renewed)
    return response


def set_session(request: Request, response: Response, session: PageSession) -> None:
    """Set the session cookie, which scripts cannot read and forms of other sites do not send."""
    is_secure = request.url.scheme == "https"
    authenticator = services_of(request.scope).authenticator
    name = session_cookie(secure=is_secure)
    secret = authenticator.ring.session_secret(session.key_id)
    if secret is not None:  # else the key ended meanwhile
        value = session.written(secret)
        response.set_cookie(
            name,
            value,
            max_age=session.seconds_left(),
            secure=is_secure,
            httponly=True,
            samesite="lax",
            path="/",
        )


# Tabs by the last segment of their address; the report has its own address.
TABS: Mapping[str, str] = {
    "report": "Report",
    "operating-point": "Operating point",
    "measures": "Measures",
    "samples": "Samples",
    "shift": "Shift",
    "try": "Try",
    "integrate": "Integrate",
}


def calibration_page(
    request: Request,
    template: str,
    tab: str,
    about: Subject,
    *,
    status: int = 200,
    **context: Any,  # noqa: ANN401 - whatever the template names
) -> HTMLResponse:
    """Render a page with the tabs of a calibration.

    Parameters
    ----------
    tab : str
        A key of `TABS`.
    about : Subject
        The calibration.
    """
    fitness = None
    if tab != "report":  # which begins with its own summary
        found = UUID(about.id)
        fitness = fitness_of(workspace_of(request), tenant_of(request), [found]).get(found)
    tabs = [(name == tab, tab_address(about.id, name), label) for name, label in TABS.items()]
    given = context | {"about": about, "tabs": tabs, "fitness": fitness}
    given["meant"] = meant_version(workspace_of(request), tenant_of(request), about.name)
    return page(request, template, status=status, **given, may_see=may(request, READ))


def tab_address(calibration_id: str, tab: str) -> str:
    """Return the address of a tab."""
    if tab == "report":
        return f"/report?calibration={calibration_id}"
    return f"/pages/calibrations/{calibration_id}/{tab}"
