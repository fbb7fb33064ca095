"""The pages: what a person reads and does in a browser, rendered here, without scripts too."""

from fastapi import FastAPI

from service.web import (
    forms,
    home,
    integrate,
    measures,
    operating_point,
    report,
    samples,
    session,
    static_files,
    try_prediction,
)
from service.web.html_errors import ReadableRefusals

ROUTES = (
    *home.ROUTES,
    *session.ROUTES,
    *session.SIGN_OUT_ROUTES,
    *home.JOBS_ROUTES,
    *forms.ROUTES,
    *forms.CANCEL_ROUTES,
    *report.ROUTES,
    *measures.ROUTES,
    *operating_point.PAGE_ROUTES,
    *operating_point.ROUTES,
    *forms.DECIDE_ROUTES,
    *samples.SAMPLES_ROUTES,
    *samples.ROUTES,
    *try_prediction.ROUTES,
    *integrate.ROUTES,
    *report.CHART_FILE_ROUTES,
    *static_files.ROUTES,
)


def add_routes(app: FastAPI) -> None:
    """Add the pages; before the routes of the API, which have one address in common with them."""
    app.router.routes.extend(ROUTES)


def add_refusals(app: FastAPI) -> None:
    """Have what is refused to a browser be a page; outside of whoever refuses it, or fails."""
    build = app.build_middleware_stack
    app.build_middleware_stack = lambda: ReadableRefusals(build())  # type: ignore[method-assign]  # no middleware goes there
