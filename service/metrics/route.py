"""``GET /metrics``: counts and durations for Prometheus."""

import structlog
from fastapi import APIRouter, Response
from sqlalchemy.exc import SQLAlchemyError

from service.errors import ServiceError
from service.http.dependencies import WorkspaceDep
from service.metrics.metrics import CONTENT_TYPE
from service.storage.overview import job_counts, queue_ages
from service.storage.tenants import ALL_TENANTS
from service.workspace import Workspace

log = structlog.get_logger(__name__)


def exposition(workspace: Workspace) -> bytes:
    """Return all metrics as text; those from the database are omitted while it is unavailable."""
    try:
        with workspace.database.reading(ALL_TENANTS) as session:
            workspace.metrics.jobs.show(job_counts(session), queue_ages(session))
    except (SQLAlchemyError, ServiceError) as error:
        log.warning("jobs_not_counted", error=type(error).__name__)
        workspace.metrics.jobs.hide()
    return workspace.metrics.render()


router = APIRouter(tags=["health"])
EXAMPLE = """\
# HELP howsure_calibration_rows_total Answered rows by calibration.
# TYPE howsure_calibration_rows_total counter
howsure_calibration_rows_total{calibration="digits",version="1",\
id="bb8369aa-adb3-4d71-85c5-45fa28050ea4"} 1204.0
"""


@router.get(
    "/metrics",
    summary="What was counted and timed",
    response_class=Response,
    responses={
        200: {
            "description": "Prometheus' text format.",
            "content": {CONTENT_TYPE: {"schema": {"type": "string"}, "example": EXAMPLE}},
        }
    },
)
def get_metrics(workspace: WorkspaceDep) -> Response:
    """Return the counters of this process since it started, and its state now."""
    return Response(exposition(workspace), media_type=CONTENT_TYPE)
