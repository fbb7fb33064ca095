"""Routes of the Open Inference Protocol, below ``/v2``."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from service.calibrations.manage import library_versions
from service.errors import InvalidInput
from service.http.bodies import read_body
from service.http.dependencies import CallDep, CallerDep, ReadinessDep, ServicesDep
from service.http.problems import PREFIX, protocol_failures
from service.predictions.oip_models import (
    model_metadata,
    ready_model,
    reference_of,
    repository_index,
)
from service.predictions.oip_schemas import (
    OipAnswer,
    OipIndexEntry,
    OipIndexRequest,
    OipLiveness,
    OipModel,
    OipReadiness,
    OipServer,
)
from service.predictions.over_asgi import answer_prediction
from service.predictions.routes import TIMEOUT_HEADER

router = APIRouter(prefix=PREFIX, tags=["open inference protocol"])
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
    suffix: str,
    *,
    method: str = "GET",
    extra: Mapping[str, Any] = MappingProxyType({}),
    responses: Mapping[int | str, Any] = MappingProxyType(protocol_failures(404)),
    **options: Any,  # noqa: ANN401 - those of FastAPI
) -> Callable[[Route], Route]:
    """Register a route for a model and for a version of it."""

    def register(route: Route) -> Route:
        for path, of_path in _PATHS.items():
            router.add_api_route(
                path + suffix,
                route,
                methods=[method],
                responses=dict(responses),
                openapi_extra={**extra, "parameters": [*of_path, *extra.get("parameters", ())]},
                **options,
            )
        return route

    return register


JSON = "application/json"
BINARY = "application/octet-stream"
MAX_INDEX_BYTES = 2**16
EXTENSIONS = ["binary_tensor_data", "model_repository"]

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
async def get_ready(readiness: ReadinessDep) -> OipReadiness:
    """Check what `GET /readyz` does."""
    ready, checks = await readiness.results()
    if not ready:
        found = "; ".join(f"{name}: {finding}" for name, finding in checks.items())
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, f"not ready ({found})")
    return OipReadiness(ready=True)


@on_models("", summary="OIP: a model's inputs and outputs")
def get_model(ctx: CallDep, reference: ModelRef) -> OipModel:
    """Return the names, types and shapes of a model's tensors."""
    return model_metadata(ctx, reference)


@on_models("/ready", summary="OIP: can a model answer?")
def get_model_ready(ctx: CallDep, reference: ModelRef) -> OipReadiness:
    """Answer for a calibration that succeeded."""
    ready_model(ctx, reference)
    return OipReadiness(ready=True)


@on_models(
    "/infer",
    method="POST",
    summary="OIP: predict",
    extra={"requestBody": _BODY, "parameters": [TIMEOUT_HEADER]},
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
async def post_index(request: Request, ctx: CallDep) -> list[OipIndexEntry]:
    """List every version of every calibration; with `ready`, those that succeeded."""
    body = await read_body(request, max_bytes=MAX_INDEX_BYTES)
    try:
        asked = OipIndexRequest.model_validate_json(body or b"{}", strict=True)
    except ValueError as error:
        raise InvalidInput.at("body", 'expected {} or {"ready": true}') from error
    return await run_in_threadpool(repository_index, ctx, ready_only=asked.ready)
