"""All routes of the service: pages and API, in the order in which they are matched."""

from fastapi import FastAPI

from howsure.bins_document.document import BinsDocument
from howsure.report.report import Report
from howsure.statistics.operating_point import ExpectedVolume
from service import health
from service.access import routes as access_routes
from service.access.guard import Guard
from service.access.origins import AllowedOrigins
from service.bins import routes as bins_routes
from service.calibrations import routes as calibrations_routes
from service.calibrations.config import CalibrationConfig
from service.calibrations.fit_config import FitConfig
from service.calibrations.upload import upload_route
from service.evaluations import routes as evaluations_routes
from service.exports import routes as exports_routes
from service.http import problems, request_record
from service.http.openapi import document as openapi
from service.http.request_record import RequestLog
from service.metrics import route as metrics_route
from service.metrics.metrics import Metrics
from service.predictions import oip_routes
from service.predictions import routes as predictions_routes
from service.predictions.oip_schemas import OipIndexRequest, OipRequest
from service.reports import operating_point_routes, samples_routes
from service.reports import routes as reports_routes
from service.reports.comparison.comparisons import Comparisons
from service.web.html_errors import HtmlErrors
from service.web.routes import ROUTES as PAGES

ROUTERS = (
    upload_route.router,
    calibrations_routes.router,
    bins_routes.router,
    evaluations_routes.router,
    operating_point_routes.router,
    samples_routes.router,
    exports_routes.router,
    predictions_routes.router,
    reports_routes.router,
    access_routes.router,
    health.router,
    metrics_route.router,
    oip_routes.router,
)
# Schemas that routes refer to by name.
SCHEMAS = (
    *(problems.Problem, CalibrationConfig, FitConfig),
    *(predictions_routes.PredictBody, OipRequest, OipIndexRequest),
)


def install(
    app: FastAPI, *, metrics: Metrics, request_log: RequestLog, allowed_origins: AllowedOrigins
) -> None:
    """Add every route to ``app``, with its failures, its documents and the layers around it."""
    problems.install(app)
    app.add_middleware(Guard, allowed_origins=allowed_origins)
    request_record.install(app, metrics=metrics, request_log=request_log, inside=HtmlErrors)
    # Pages come first: one of them shares its path with a route of the API.
    app.router.routes.extend(PAGES)
    for router in ROUTERS:
        app.include_router(router)
    openapi.add_documentation_page(app)
    openapi.complete_document(app, SCHEMAS, (Report, Comparisons, ExpectedVolume, BinsDocument))
