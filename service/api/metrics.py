"""``GET /metrics``: what the service counted and timed, for Prometheus."""

from fastapi import APIRouter, Response

from service.api.dependencies import WorkspaceDep
from service.metrics import CONTENT_TYPE
from service.operations.exposition import exposition

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    summary="What was counted and timed",
    response_class=Response,
    responses={
        200: {
            "description": "Prometheus' text format.",
            "content": {CONTENT_TYPE: {"schema": {"type": "string"}}},
        }
    },
)
def get_metrics(workspace: WorkspaceDep) -> Response:
    """Return the counters of this process since it started, and its state now."""
    return Response(exposition(workspace), media_type=CONTENT_TYPE)
