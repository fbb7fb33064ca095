"""The hot path takes what FastAPI's router would take, with the same parameters."""

from urllib.parse import unquote

import pytest
from fastapi import FastAPI
from starlette.routing import Match

from service.http.prediction_exchange import (
    INFER,
    INFER_VERSION,
    PREDICT,
    hot_route,
    hot_target,
    query_of,
)

HOT = [
    "/predict",
    "/%70redict",
    "/v2/models/digits/infer",
    "/v2/models/digits/versions/3/infer",
    "/v2/models/a%20b/versions/%C3%A9/infer",
    "/v2/models/a%2520b/infer",
    "/v2/models/versions/infer",
    "/v2/models/versions/versions/versions/infer",
    "/v2/models/infer/infer",
    "/v2/models/a%3Fb/infer",
    "/v2/models/%FF/infer",
]
ORDINARY = [
    "/",
    "//predict",
    "/predict/",
    "/Predict",
    "/predict/x",
    "/v2/models/infer",
    "/v2/models//infer",
    "/v2/models/digits/infer/",
    "/v2/models/digits/versions/infer",
    "/v2/models/digits/versions//infer",
    "/v2/models/a%2Fb/infer",
    "/v2/models/a/b/infer",
    "/v2/models/a/versions/b/c/infer",
    "/v2/models/digits/ready",
    "/v2/modelsx/digits/infer",
]


@pytest.fixture(scope="module")
def router() -> FastAPI:
    app = FastAPI()
    for path in (PREDICT, INFER, INFER_VERSION):
        app.add_api_route(path, lambda: None, methods=["POST"])
    return app


def routed(router, path):
    """Return what FastAPI makes of a path."""
    scope = {"type": "http", "method": "POST", "path": unquote(path)}
    for route in router.router.routes:
        found, child = route.matches(scope)
        if found is Match.FULL:
            return route.path, child["path_params"]
    return None


@pytest.mark.parametrize("path", HOT + ORDINARY)
def test_the_router_would_find_the_same(router, path) -> None:
    expected = routed(router, path)
    assert (expected is not None) == (path in HOT)
    for found in (hot_target(path.encode()), hot_route("POST", unquote(path))):
        assert (found and (found.route, dict(found.parameters))) == expected


@pytest.mark.parametrize(
    ("target", "route", "query"),
    [
        (b"/predict?a=b", PREDICT, b"a=b"),
        (b"/predict?a=/?b", PREDICT, b"a=/?b"),
        (b"/predict#x?a=b", PREDICT, b""),
        (b"/predict?a#b", PREDICT, b"a"),
        (b"http://host/predict?a", PREDICT, b"a"),
        (b"/predict" + b"x" * 1000, None, b""),
        (b"/v2/models/" + b"x" * 1000 + b"/infer", INFER, b""),
        (b"/\xff/predict", None, b""),
        (b"host:80", None, b""),
        (b"*", None, b""),
        (b"", None, b""),
    ],
)
def test_a_target_is_more_than_its_path(target, route, query) -> None:
    found = hot_target(target)
    assert (found and found.route) == route
    assert query_of(target) == query


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "post"])
def test_other_methods_are_ordinary(method) -> None:
    assert hot_route(method, "/predict") is None


@pytest.mark.parametrize(
    ("path", "root_path", "is_hot"),
    [
        ("/api/predict", "/api", True),
        ("/predict", "/api", True),
        ("/apipredict", "/api", False),
        ("/api/api/predict", "/api", False),
    ],
)
def test_what_is_before_the_root_is_no_part_of_it(path, root_path, is_hot) -> None:
    assert (hot_route("POST", path, root_path=root_path) is not None) == is_hot
