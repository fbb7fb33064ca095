"""The HTTP interface: one resource a file, its router and its schemas together."""

from fastapi import FastAPI

from service.api import (
    audit,
    bins,
    calibrate,
    calibrations,
    documentation,
    envelope,
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
    operating_points,
    predict,
    problems,
    refit,
    report,
    samples,
    usage,
)
from service.api.access.audit_trail import AuditTrail
from service.api.access.guard import Guard
from service.api.access.request_rules import RequestRules
from service.api.request_meter import RequestMeter

ROUTERS = (
    calibrate,
    calibrations,
    refit,
    events,
    evaluations,
    operating_points,
    bins,
    samples,
    import_bins,
    export,
    predict,
    oip,
    report,
    usage,
    models_in_memory,
    audit,
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
    app.add_middleware(
        RequestRules,
        sites=app.state.sites,
        body_seconds=app.state.front.limits.header_seconds,
    )
    app.add_middleware(Guard)
    app.add_middleware(AuditTrail)
    app.add_middleware(RequestMeter, metrics=app.state.metrics, request_log=app.state.request_log)
    app.add_middleware(app.state.front.around)
    envelope.install(app)
    oip.install(app)
    for resource in ROUTERS:
        app.include_router(resource.router)
    documentation.install(app)
    openapi.install(app, SCHEMAS)
