"""Pages about one calibration: its name above, and a way from each to the others."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from service.web.page import page

# What each is about, by the last word of its address; the report has an address of its own.
TABS: Mapping[str, str] = {
    "report": "Report",
    "operating-point": "Operating point",
    "measures": "Measures",
    "samples": "Samples",
    "try": "Try",
    "integrate": "Integrate",
}


def calibration_page(
    request: Request,
    template: str,
    tab: str,
    about: Mapping[str, Any],
    *,
    status: int = 200,
    **context: Any,  # noqa: ANN401 - whatever the template names
) -> HTMLResponse:
    """Render a page in the frame that all about one calibration have.

    Parameters
    ----------
    tab : str
        Which of `TABS` it is.
    about : mapping
        ``calibration`` of the report: its id, name and version.
    """
    tabs = [(name == tab, tab_address(about["id"], name), label) for name, label in TABS.items()]
    return page(request, template, status=status, about=about, tabs=tabs, **context)


def tab_address(calibration_id: str, tab: str) -> str:
    """Return where a page of a calibration is."""
    if tab == "report":
        return f"/report?calibration={calibration_id}"
    return f"/pages/calibrations/{calibration_id}/{tab}"
