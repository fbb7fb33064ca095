"""The pages: what a person reads and does in a browser, rendered here, without scripts too."""

from fastapi import FastAPI

from service.web import (
    assets,
    calibrate,
    cancel,
    chart_file,
    decide,
    home,
    integrate,
    jobs,
    measures,
    operating_point,
    outcome,
    report,
    sample_file,
    samples,
    scripts,
    sign_in,
    sign_out,
    try_one,
)
from service.web.readable_refusals import ReadableRefusals

ROUTES = (
    *home.ROUTES,
    *sign_in.ROUTES,
    *sign_out.ROUTES,
    *jobs.ROUTES,
    *calibrate.ROUTES,
    *cancel.ROUTES,
    *report.ROUTES,
    *measures.ROUTES,
    *operating_point.ROUTES,
    *outcome.ROUTES,
    *decide.ROUTES,
    *samples.ROUTES,
    *sample_file.ROUTES,
    *try_one.ROUTES,
    *integrate.ROUTES,
    *chart_file.ROUTES,
    *scripts.ROUTES,
    *assets.ROUTES,
)


def add_routes(app: FastAPI) -> None:
    """Add the pages; before the routes of the API, which have one address in common with them."""
    app.router.routes.extend(ROUTES)


def add_refusals(app: FastAPI) -> None:
    """Have what is refused to a browser be a page; outside of whoever refuses it, or fails."""
    build = app.build_middleware_stack
    app.build_middleware_stack = lambda: ReadableRefusals(build())  # type: ignore[method-assign]  # no middleware goes there
