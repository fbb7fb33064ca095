"""Paths of models below ``/v2``: each is there for a name, and for one of its versions."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request

from service.operations.oip.repository import reference_of

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
    """Return what the path refers to, as other routes have it."""
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
    """Register a route of a model and, beside it, that of one of its versions."""

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
