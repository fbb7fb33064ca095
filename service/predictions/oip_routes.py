"""Routes of the Open Inference Protocol, below ``/v2``."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from service.calibrations.manage import library_versions
from service.errors import InvalidInput
from service.http.bodies import read_body
from service.http.dependencies import CallerDep, ServicesDep, TenantDep, WorkspaceDep
from service.http.health import readiness
from service.http.problems import PREFIX, protocol_failures
from service.predictions.oip_models import (
    model_config,
    model_metadata,
    ready_model,
    ready_models,
    reference_of,
    repository_index,
)
from service.predictions.oip_schemas import (
    OipAnswer,
    OipConfig,
    OipIndexEntry,
    OipIndexRequest,
    OipLiveness,
    OipModel,
    OipReadiness,
    OipServer,
    OipStatistics,
)
from service.predictions.over_asgi import answer_prediction
from service.predictions.routes import TIMEOUT_HEADER

Route = TypeVar("Route", bound=Callable[..., Any])
_NAME = {
    "name": "model_name",
    "in": "path",
    "required": True,
    "description": "A calibration's name.",
    "schema": {"type": "string"},
}
_VERSION = _NAME | {
    "name": "model_version",
    "description": "Its version; without one, the version that the name means.",
}
_PATHS = {
    "/models/{model_name}": [_NAME],
    "/models/{model_name}/versions/{model_version}": [_NAME, _VERSION],
}


def model_reference(request: Request) -> str:
    """Return the reference that the path names."""
    given = request.path_params
    return reference_of(given["model_name"], given.get("model_version"))


ModelRef = Annotated[str, Depends(model_reference)]


def on_models(
    router: APIRouter,
    method: str,
    suffix: str,
    *,
    body: dict[str, Any] | None = None,
    parameters: Sequence[dict[str, Any]] = (),
    **options: Any,  # noqa: ANN401 - those of FastAPI
) -> Callable[[Route], Route]:
    """Register a route for a model and for a version of it."""

    def register(route: Route) -> Route:
        for path, of_path in _PATHS.items():
            extra: dict[str, Any] = {"parameters": [*of_path, *parameters]}
            if body is not None:
                extra["requestBody"] = body
            router.add_api_route(
                path + suffix,
                route,
                methods=[method],
                openapi_extra=extra,
                **options,
            )
        return route

    return register


JSON = "application/json"
BINARY = "application/octet-stream"
MAX_INDEX_BYTES = 2**16
EXTENSIONS = ["binary_tensor_data", "model_configuration", "model_repository", "statistics"]

router = APIRouter(prefix=PREFIX, tags=["open inference protocol"])

_BYTES = {"type": "string", "format": "binary"}
_BODY = {
    "required": True,
    "content": {
        JSON: {"schema": {"$ref": "#/components/schemas/OipRequest"}},
        BINARY: {"schema": _BYTES},
    },
}


@router.get("", summary="OIP: the server", responses=protocol_failures())
def get_server() -> OipServer:
    """Return the name, version and supported extensions of the server."""
    return OipServer(
        name="howsure", version=library_versions()["howsure"], extensions=list(EXTENSIONS)
    )


@router.get("/health/live", summary="OIP: does the server answer?", responses=protocol_failures())
async def get_live() -> OipLiveness:
    """Answer as soon as the process can answer anything."""
    return OipLiveness(live=True)


@router.get(
    "/health/ready", summary="OIP: can the server do its work?", responses=protocol_failures()
)
def get_ready(request: Request, workspace: WorkspaceDep) -> OipReadiness:
    """Check what `GET /readyz` does."""
    ready, checks = readiness(workspace, is_stopping=request.app.state.stopping.is_set())
    if not ready:
        found = "; ".join(f"{name}: {finding}" for name, finding in checks.items())
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, f"not ready ({found})")
    return OipReadiness(ready=True)


@router.get("/models/stats", summary="OIP: counts of all models", responses=protocol_failures())
def get_all_statistics(
    workspace: WorkspaceDep, tenant_id: TenantDep, services: ServicesDep
) -> OipStatistics:
    """Return the counts of every succeeded calibration."""
    refs = ready_models(workspace, tenant_id)
    return OipStatistics(model_stats=[services.oip_statistics.of(ref) for ref in refs])


@on_models(
    router, "GET", "", responses=protocol_failures(404), summary="OIP: a model's inputs and outputs"
)
def get_model(workspace: WorkspaceDep, tenant_id: TenantDep, reference: ModelRef) -> OipModel:
    """Return the names, types and shapes of a model's tensors."""
    return model_metadata(workspace, tenant_id, reference)


@on_models(
    router, "GET", "/ready", responses=protocol_failures(404), summary="OIP: can a model answer?"
)
def get_model_ready(
    workspace: WorkspaceDep, tenant_id: TenantDep, reference: ModelRef
) -> OipReadiness:
    """Answer for a calibration that succeeded."""
    ready_model(workspace, tenant_id, reference)
    return OipReadiness(ready=True)


@on_models(
    router,
    "GET",
    "/config",
    responses=protocol_failures(404),
    summary="OIP: a model's configuration",
)
def get_config(workspace: WorkspaceDep, tenant_id: TenantDep, reference: ModelRef) -> OipConfig:
    """Return the metadata in the format of Triton's model configuration."""
    return model_config(workspace, tenant_id, reference)


@on_models(
    router, "GET", "/stats", responses=protocol_failures(404), summary="OIP: counts of a model"
)
def get_statistics(
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    services: ServicesDep,
    reference: ModelRef,
) -> OipStatistics:
    """Return the counts of a version."""
    ref = ready_model(workspace, tenant_id, reference)
    return OipStatistics(model_stats=[services.oip_statistics.of(ref)])


@on_models(
    router,
    "POST",
    "/infer",
    summary="OIP: predict",
    body=_BODY,
    parameters=[TIMEOUT_HEADER],
    responses={
        **protocol_failures(400, 404, 408, 413, 415, 429, 504),
        200: {"content": {BINARY: {"schema": _BYTES}}},
    },
    response_model=OipAnswer,
    response_model_exclude_none=True,
)
async def post_infer(request: Request, services: ServicesDep, caller: CallerDep) -> Response:
    """Answer rows with classes, calibrated probabilities and flags, as tensors."""
    return await answer_prediction(request, services.predictions, caller)


@router.post(
    "/repository/index",
    summary="OIP: all models",
    responses=protocol_failures(400),
    openapi_extra={
        "requestBody": {
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/OipIndexRequest"}}}
        }
    },
)
async def post_index(
    request: Request, workspace: WorkspaceDep, tenant_id: TenantDep
) -> list[OipIndexEntry]:
    """List every version of every calibration; with `ready`, those that succeeded."""
    body = await read_body(request, max_bytes=MAX_INDEX_BYTES)
    try:
        asked = OipIndexRequest.model_validate_json(body or b"{}", strict=True)
    except ValueError as error:
        raise InvalidInput.at("body", 'expected {} or {"ready": true}') from error
    return await run_in_threadpool(repository_index, workspace, tenant_id, ready_only=asked.ready)
