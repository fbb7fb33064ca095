"""Predictions are recognised as FastAPI's router would, with the same parameters."""

from urllib.parse import unquote

import pytest
from fastapi.routing import APIRoute
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


ROUTES = [
    APIRoute(path, endpoint=lambda: None, methods=["POST"])
    for path in (PREDICT, INFER, INFER_VERSION)
]


@pytest.mark.parametrize("path", HOT + ORDINARY)
def test_the_router_would_find_the_same(path) -> None:
    scope = {"type": "http", "method": "POST", "path": unquote(path)}
    matches = [(route.path, *route.matches(scope)) for route in ROUTES]
    expected = [
        (name, child["path_params"]) for name, match, child in matches if match is Match.FULL
    ]
    assert len(expected) == (path in HOT)
    for found in (hot_target(path.encode()), hot_route(unquote(path))):
        assert ([(found.route, dict(found.parameters))] if found else []) == expected


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
def test_targets_may_have_a_query_a_fragment_and_a_host(target, route, query) -> None:
    found = hot_target(target)
    assert (found and found.route) == route
    assert query_of(target) == query
