"""What each route asks of a key; a route that is not here lets nobody in once there are keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from starlette.routing import compile_path

from service.operations.api_keys import ADMIN, PREDICT, READ, WRITE

AnyOf: TypeAlias = frozenset[str]

# Whoever can reach the service may ask for it; it tells nothing of a tenant.
OPEN: AnyOf = frozenset()
_PREDICT = frozenset({PREDICT})
_READ = frozenset({READ})
_WRITE = frozenset({WRITE})
_ADMIN = frozenset({ADMIN})
# Clients of the protocol look at a model before they ask it.
_PREDICT_OR_READ = _PREDICT | _READ

_OF_CALIBRATION = "/calibrations/{calibration_id}"
_OF_EVALUATION = f"{_OF_CALIBRATION}/evaluations/{{evaluation_name:path}}"
_OF_MODEL = "/v2/models/{model_name}"
_OF_VERSION = f"{_OF_MODEL}/versions/{{model_version}}"

_PAGE_OF_CALIBRATION = f"/pages{_OF_CALIBRATION}"

# In the order in which the paths are tried: what is fixed before a name, which may have
# slashes.
ROUTE_SCOPES: Mapping[tuple[str, str], AnyOf] = {
    ("POST", "/calibrate"): _WRITE,
    ("GET", "/calibrations"): _READ,
    ("POST", "/calibrations/import"): _WRITE,
    ("GET", _OF_CALIBRATION): _READ,
    ("DELETE", _OF_CALIBRATION): _WRITE,
    ("POST", f"{_OF_CALIBRATION}/cancel"): _WRITE,
    ("POST", f"{_OF_CALIBRATION}/refit"): _WRITE,
    ("POST", f"{_OF_CALIBRATION}/promote"): _WRITE,
    ("GET", f"{_OF_CALIBRATION}/events"): _READ,
    ("GET", f"{_OF_CALIBRATION}/bins"): _READ,
    ("GET", f"{_OF_CALIBRATION}/samples"): _READ,
    ("GET", f"{_OF_CALIBRATION}/model.onnx"): _READ,
    ("GET", f"{_OF_CALIBRATION}/model_data/{{name}}"): _READ,
    ("GET", f"{_OF_CALIBRATION}/operating-points"): _READ,
    ("GET", f"{_OF_CALIBRATION}/operating-points/preview"): _READ,
    ("POST", f"{_OF_CALIBRATION}/operating-points"): _WRITE,
    ("POST", f"{_OF_CALIBRATION}/operating-points/withdraw"): _WRITE,
    ("POST", f"{_OF_CALIBRATION}/evaluations"): _WRITE,
    ("GET", f"{_OF_CALIBRATION}/evaluations"): _READ,
    ("GET", f"{_OF_EVALUATION}/events"): _READ,
    ("GET", _OF_EVALUATION): _READ,
    ("DELETE", _OF_EVALUATION): _WRITE,
    ("POST", f"{_OF_EVALUATION}/cancel"): _WRITE,
    ("GET", "/report"): _READ,
    ("GET", "/usage"): _READ,
    ("POST", "/predict"): _PREDICT,
    ("GET", "/v2"): OPEN,
    ("GET", "/v2/health/live"): OPEN,
    ("GET", "/v2/health/ready"): OPEN,
    ("GET", "/v2/models/stats"): _READ,
    ("GET", _OF_MODEL): _PREDICT_OR_READ,
    ("GET", _OF_VERSION): _PREDICT_OR_READ,
    ("GET", f"{_OF_MODEL}/ready"): _PREDICT_OR_READ,
    ("GET", f"{_OF_VERSION}/ready"): _PREDICT_OR_READ,
    ("GET", f"{_OF_MODEL}/config"): _PREDICT_OR_READ,
    ("GET", f"{_OF_VERSION}/config"): _PREDICT_OR_READ,
    ("GET", f"{_OF_MODEL}/stats"): _READ,
    ("GET", f"{_OF_VERSION}/stats"): _READ,
    ("POST", f"{_OF_MODEL}/infer"): _PREDICT,
    ("POST", f"{_OF_VERSION}/infer"): _PREDICT,
    ("POST", "/v2/repository/index"): _PREDICT_OR_READ,
    ("GET", "/models"): _ADMIN,
    ("GET", "/audit"): _ADMIN,
    ("GET", "/metrics"): _ADMIN,
    ("GET", "/healthz"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/docs"): OPEN,
    ("GET", "/openapi.json"): OPEN,
    ("HEAD", "/openapi.json"): OPEN,
    ("GET", "/"): _READ,
    ("GET", "/sign-in"): OPEN,
    ("POST", "/sign-in"): OPEN,
    ("POST", "/sign-out"): OPEN,
    ("GET", "/pages/jobs"): _READ,
    ("POST", "/pages/calibrate"): _WRITE,
    ("POST", f"{_PAGE_OF_CALIBRATION}/cancel"): _WRITE,
    ("POST", f"/pages{_OF_EVALUATION}/cancel"): _WRITE,
    ("GET", f"{_PAGE_OF_CALIBRATION}/operating-point"): _READ,
    ("GET", f"{_PAGE_OF_CALIBRATION}/operating-point/outcome"): _READ,
    ("POST", f"{_PAGE_OF_CALIBRATION}/operating-points"): _WRITE,
    ("POST", f"{_PAGE_OF_CALIBRATION}/operating-points/withdraw"): _WRITE,
    ("GET", f"{_PAGE_OF_CALIBRATION}/integrate"): _READ,
    ("GET", f"{_PAGE_OF_CALIBRATION}/charts/{{chart}}/{{key}}"): _READ,
    ("GET", f"{_PAGE_OF_CALIBRATION}/samples"): _READ,
    ("GET", f"{_PAGE_OF_CALIBRATION}/samples/{{row}}.png"): _READ,
    ("GET", f"{_PAGE_OF_CALIBRATION}/try"): _READ,
    ("POST", f"{_PAGE_OF_CALIBRATION}/try"): _PREDICT,
    ("GET", f"{_PAGE_OF_CALIBRATION}/measures"): _READ,
    ("GET", "/pages/scripts/{name}"): OPEN,
    ("GET", "/pages/static/{path:path}"): OPEN,
    ("HEAD", "/pages/static/{path:path}"): OPEN,
    ("GET", "/static/{path:path}"): OPEN,
    ("HEAD", "/static/{path:path}"): OPEN,
}
# As the router matches them.
_PATTERNS = [
    (method, path, compile_path(path)[0], scopes) for (method, path), scopes in ROUTE_SCOPES.items()
]


@dataclass(frozen=True)
class DeclaredRoute:
    """A route, and what a key must be for: one of the scopes, if it is not `OPEN`.

    ``named`` holds what stands in the places of its path.
    """

    path: str
    scopes: AnyOf
    named: Mapping[str, str]


def declared_methods(path: str) -> Mapping[str, AnyOf]:
    """Return the methods that a path answers, and what a key must be for with each."""
    matching = [template for _, template, pattern, _ in _PATTERNS if pattern.match(path)]
    # What is fixed is nearer than a name, which may have slashes.
    nearest = min(matching, key=lambda found: (found.count("{"), -len(found)), default=None)
    return {method: scopes for (method, of), scopes in ROUTE_SCOPES.items() if of == nearest}


def declared_route(method: str, path: str) -> DeclaredRoute | None:
    """Return the route that a request is for, None if it is for none that is declared."""
    for declared, template, pattern, scopes in _PATTERNS:
        matched = pattern.match(path) if declared == method else None
        if matched is not None:
            return DeclaredRoute(template, scopes, matched.groupdict())
    return None
