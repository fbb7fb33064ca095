"""The HTTP interface: one resource a file, its router and its schemas together."""

from fastapi import FastAPI

from service.api import (
    bins,
    calibrate,
    calibrations,
    documentation,
    errors,
    evaluations,
    events,
    export,
    health,
    import_bins,
    metrics,
    models_in_memory,
    oip,
    openapi,
    predict,
    problems,
    refit,
    report,
)
from service.api.access.guard import Guard
from service.api.request_meter import RequestMeter

ROUTERS = (
    calibrate,
    calibrations,
    refit,
    events,
    evaluations,
    bins,
    import_bins,
    export,
    predict,
    oip,
    report,
    models_in_memory,
    health,
    metrics,
)
SCHEMAS = (
    problems.SCHEMAS,
    calibrate.SCHEMAS,
    refit.SCHEMAS,
    import_bins.SCHEMAS,
    predict.SCHEMAS,
    oip.SCHEMAS,
)


def install(app: FastAPI) -> None:
    """Add every route to ``app``, with its failures and its documents."""
    errors.install(app)
    app.add_middleware(Guard)
    app.add_middleware(RequestMeter, metrics=app.state.metrics)
    app.add_middleware(app.state.front.around)
    oip.install(app)
    for resource in ROUTERS:
        app.include_router(resource.router)
    documentation.install(app)
    openapi.install(app, SCHEMAS)
