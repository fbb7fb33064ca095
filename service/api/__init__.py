"""The HTTP interface: one resource a file, its router and its schemas together."""

from fastapi import FastAPI

from service.api import (
    bins,
    calibrate,
    calibrations,
    documentation,
    errors,
    evaluations,
    export,
    health,
    import_bins,
    openapi,
    predict,
    problems,
    refit,
    report,
)

ROUTERS = (
    calibrate,
    calibrations,
    refit,
    evaluations,
    bins,
    import_bins,
    export,
    predict,
    report,
    health,
)
SCHEMAS = (
    problems.SCHEMAS,
    calibrate.SCHEMAS,
    refit.SCHEMAS,
    import_bins.SCHEMAS,
    predict.SCHEMAS,
)


def install(app: FastAPI) -> None:
    """Add every route to ``app``, with its failures and its documents."""
    errors.install(app)
    for resource in ROUTERS:
        app.include_router(resource.router)
    documentation.install(app)
    openapi.install(app, SCHEMAS)
