"""The HTTP interface: one resource a file, its router and its schemas together."""

from typing import Any

from fastapi import FastAPI

from service.api import (
    bins,
    calibrate,
    calibrations,
    errors,
    evaluations,
    health,
    predict,
    problems,
    refit,
    report,
)

ROUTERS = (calibrate, calibrations, refit, evaluations, bins, predict, report, health)
SCHEMAS = (problems.SCHEMAS, calibrate.SCHEMAS, refit.SCHEMAS, predict.SCHEMAS)


def install(app: FastAPI) -> None:
    """Add every route to ``app``, with its failures and its documents."""
    errors.install(app)
    for resource in ROUTERS:
        app.include_router(resource.router)
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schemas = generate().setdefault("components", {}).setdefault("schemas", {})
            for group in SCHEMAS:
                for name, schema in group.items():
                    schemas.update(schema.get("$defs", {}))
                    schemas[name] = {key: schema[key] for key in schema if key != "$defs"}
        return generate()

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way
