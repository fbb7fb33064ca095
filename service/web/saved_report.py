"""The report as one file: it needs no service, no script and no network to be read."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import Any

from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from service.web.assets import FOLDER
from service.web.charts.drawn import draw_charts
from service.web.charts.renderer import Renderer
from service.web.page import TEMPLATES
from service.web.report_content import report_content

SHEETS = ("pages.css", "charts.css")


def saved_report(charts: Renderer, report: Mapping[str, Any]) -> Response:
    """Return the page of a report with all that it shows inside of it.

    Drawing takes some tenths of a second, so this is for a thread.
    """
    content = report_content(report, draw_charts(charts, report))
    about = report["calibration"]
    text = TEMPLATES.get_template("saved_report.html").render(
        content | {"about": about, "style": style(), "security": policy()}
    )
    return HTMLResponse(
        text,
        headers={
            # What stands in the file itself cannot say where it may be framed.
            "Content-Security-Policy": f"{policy()}; frame-ancestors 'none'",
            "Content-Disposition": f'inline; filename="{about["name"]}-{about["version"]}.html"',
        },
    )


@cache
def style() -> Markup:
    """Return the style sheets of the page, as one."""
    return Markup("\n".join((FOLDER / name).read_text(encoding="utf-8") for name in SHEETS))  # noqa: S704 -- our own files


@cache
def policy() -> str:
    """Return what a browser may do with the file: apply this one style sheet, and load nothing."""
    digest = b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
