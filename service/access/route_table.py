"""One table of all routes: scopes, audit actions and limits of bodies.

Once there are keys, nobody may use a route that is not in this table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from starlette.routing import compile_path

from service.access.api_keys import ADMIN, PREDICT, READ, WRITE

AnyOf: TypeAlias = frozenset[str]

# Anybody may use these routes; they reveal nothing about a tenant.
OPEN: AnyOf = frozenset()
_PREDICT = frozenset({PREDICT})
_READ = frozenset({READ})
_WRITE = frozenset({WRITE})
_ADMIN = frozenset({ADMIN})
# Clients of the Open Inference Protocol read a model's metadata before they predict.
_PREDICT_OR_READ = _PREDICT | _READ

MEBIBYTE = 1024**2
# Maximum body of most routes; the guard receives it whole before the route runs.
SMALL = 64 * 1024
# The route itself receives the body and enforces its limits.
BY_ROUTE = None


class RouteRule(NamedTuple):
    """The rule for requests to a route.

    The key needs one of the scopes, unless they are `OPEN`. ``action`` is the name of a change in
    the audit log. ``body`` is the maximum body in bytes.
    """

    scopes: AnyOf
    action: str | None = None
    body: int | None = SMALL
    may_be_compressed: bool = False


_OF_CALIBRATION = "/calibrations/{calibration_id}"
_OF_EVALUATION = f"{_OF_CALIBRATION}/evaluations/{{evaluation_name:path}}"
_OF_MODEL = "/v2/models/{model_name}"
_OF_VERSION = f"{_OF_MODEL}/versions/{{model_version}}"

_PAGE_OF_CALIBRATION = f"/pages{_OF_CALIBRATION}"

# Paths are tried in this order: fixed paths before names, which may contain slashes.
ROUTES: Mapping[tuple[str, str], RouteRule] = {
    ("POST", "/calibrate"): RouteRule(_WRITE, "calibrate", body=BY_ROUTE),
    ("GET", "/calibrations"): RouteRule(_READ),
    ("POST", "/calibrations/import"): RouteRule(_WRITE, "import", body=BY_ROUTE),
    ("GET", _OF_CALIBRATION): RouteRule(_READ),
    ("DELETE", _OF_CALIBRATION): RouteRule(_WRITE, "delete"),
    ("POST", f"{_OF_CALIBRATION}/cancel"): RouteRule(_WRITE, "cancel"),
    ("POST", f"{_OF_CALIBRATION}/refit"): RouteRule(_WRITE, "refit", body=BY_ROUTE),
    ("POST", f"{_OF_CALIBRATION}/promote"): RouteRule(_WRITE, "promote"),
    ("GET", f"{_OF_CALIBRATION}/events"): RouteRule(_READ),
    ("GET", f"{_OF_CALIBRATION}/bins"): RouteRule(_READ),
    ("GET", f"{_OF_CALIBRATION}/samples"): RouteRule(_READ),
    ("GET", f"{_OF_CALIBRATION}/model.onnx"): RouteRule(_READ),
    ("GET", f"{_OF_CALIBRATION}/model_data/{{name}}"): RouteRule(_READ),
    ("GET", f"{_OF_CALIBRATION}/operating-points"): RouteRule(_READ),
    ("GET", f"{_OF_CALIBRATION}/operating-points/preview"): RouteRule(_READ),
    ("POST", f"{_OF_CALIBRATION}/operating-points"): RouteRule(_WRITE, "put-in-force"),
    ("POST", f"{_OF_CALIBRATION}/operating-points/withdraw"): RouteRule(_WRITE, "withdraw"),
    ("POST", f"{_OF_CALIBRATION}/evaluations"): RouteRule(_WRITE, "evaluate", body=BY_ROUTE),
    ("GET", f"{_OF_CALIBRATION}/evaluations"): RouteRule(_READ),
    ("GET", f"{_OF_EVALUATION}/events"): RouteRule(_READ),
    ("GET", _OF_EVALUATION): RouteRule(_READ),
    ("DELETE", _OF_EVALUATION): RouteRule(_WRITE, "delete-evaluation"),
    ("POST", f"{_OF_EVALUATION}/cancel"): RouteRule(_WRITE, "cancel-evaluation"),
    ("GET", "/report"): RouteRule(_READ),
    ("GET", "/usage"): RouteRule(_READ),
    ("POST", "/predict"): RouteRule(_PREDICT, body=BY_ROUTE),
    ("GET", "/v2"): RouteRule(OPEN),
    ("GET", "/v2/health/live"): RouteRule(OPEN),
    ("GET", "/v2/health/ready"): RouteRule(OPEN),
    ("GET", _OF_MODEL): RouteRule(_PREDICT_OR_READ),
    ("GET", _OF_VERSION): RouteRule(_PREDICT_OR_READ),
    ("GET", f"{_OF_MODEL}/ready"): RouteRule(_PREDICT_OR_READ),
    ("GET", f"{_OF_VERSION}/ready"): RouteRule(_PREDICT_OR_READ),
    ("POST", f"{_OF_MODEL}/infer"): RouteRule(_PREDICT, body=BY_ROUTE, may_be_compressed=True),
    ("POST", f"{_OF_VERSION}/infer"): RouteRule(_PREDICT, body=BY_ROUTE, may_be_compressed=True),
    ("POST", "/v2/repository/index"): RouteRule(_PREDICT_OR_READ),
    ("GET", "/models"): RouteRule(_ADMIN),
    ("GET", "/audit"): RouteRule(_ADMIN),
    ("GET", "/metrics"): RouteRule(_ADMIN),
    ("GET", "/healthz"): RouteRule(OPEN),
    ("GET", "/readyz"): RouteRule(OPEN),
    ("GET", "/docs"): RouteRule(OPEN),
    ("GET", "/openapi.json"): RouteRule(OPEN),
    ("HEAD", "/openapi.json"): RouteRule(OPEN),
    ("GET", "/"): RouteRule(_READ),
    ("GET", "/sign-in"): RouteRule(OPEN),
    ("POST", "/sign-in"): RouteRule(OPEN),
    ("POST", "/sign-out"): RouteRule(OPEN),
    ("GET", "/pages/jobs"): RouteRule(_READ),
    ("POST", "/pages/calibrate"): RouteRule(_WRITE, "calibrate", body=BY_ROUTE),
    ("GET", f"{_PAGE_OF_CALIBRATION}/delete"): RouteRule(_READ),
    ("POST", f"{_PAGE_OF_CALIBRATION}/delete"): RouteRule(_WRITE, "delete"),
    ("POST", f"{_PAGE_OF_CALIBRATION}/cancel"): RouteRule(_WRITE, "cancel"),
    ("POST", f"/pages{_OF_EVALUATION}/cancel"): RouteRule(_WRITE, "cancel-evaluation"),
    ("GET", f"{_PAGE_OF_CALIBRATION}/operating-point"): RouteRule(_READ),
    ("GET", f"{_PAGE_OF_CALIBRATION}/operating-point/outcome"): RouteRule(_READ),
    ("POST", f"{_PAGE_OF_CALIBRATION}/operating-points"): RouteRule(_WRITE, "put-in-force"),
    ("POST", f"{_PAGE_OF_CALIBRATION}/operating-points/withdraw"): RouteRule(_WRITE, "withdraw"),
    ("GET", f"{_PAGE_OF_CALIBRATION}/integrate"): RouteRule(_READ),
    ("GET", f"{_PAGE_OF_CALIBRATION}/charts/{{chart}}/{{key}}"): RouteRule(_READ),
    ("GET", f"{_PAGE_OF_CALIBRATION}/samples"): RouteRule(_READ),
    ("GET", f"{_PAGE_OF_CALIBRATION}/samples/{{row}}.png"): RouteRule(_READ),
    ("GET", f"{_PAGE_OF_CALIBRATION}/try"): RouteRule(_READ),
    ("POST", f"{_PAGE_OF_CALIBRATION}/try"): RouteRule(_PREDICT, body=8 * MEBIBYTE),
    ("GET", f"{_PAGE_OF_CALIBRATION}/measures"): RouteRule(_READ),
    ("GET", f"{_PAGE_OF_CALIBRATION}/shift"): RouteRule(_READ),
    ("GET", f"{_PAGE_OF_CALIBRATION}/shift.csv"): RouteRule(_READ),
    ("GET", "/pages/static/{path:path}"): RouteRule(OPEN),
    ("HEAD", "/pages/static/{path:path}"): RouteRule(OPEN),
    ("GET", "/static/{path:path}"): RouteRule(OPEN),
    ("HEAD", "/static/{path:path}"): RouteRule(OPEN),
}
# The same patterns as the router's.
_PATTERNS = [(method, path, compile_path(path)[0], rule) for (method, path), rule in ROUTES.items()]


@dataclass(frozen=True)
class DeclaredRoute:
    """A route and its rule; ``named`` holds the parameters of its path."""

    path: str
    named: Mapping[str, str]
    rule: RouteRule


def declared_methods(path: str) -> Mapping[str, RouteRule]:
    """Return the methods of a path with their rules."""
    matching = [template for _, template, pattern, _ in _PATTERNS if pattern.match(path)]
    # Fixed paths are preferred to names, which may contain slashes.
    nearest = min(matching, key=lambda found: (found.count("{"), -len(found)), default=None)
    return {method: rule for (method, of), rule in ROUTES.items() if of == nearest}


def declared_route(method: str, path: str) -> DeclaredRoute | None:
    """Return the route of a request; None if there is no such route."""
    for declared, template, pattern, rule in _PATTERNS:
        matched = pattern.match(path) if declared == method else None
        if matched is not None:
            return DeclaredRoute(template, matched.groupdict(), rule)
    return None
