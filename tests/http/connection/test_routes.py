"""Predictions are recognised as FastAPI's router would, with the same parameters."""

from urllib.parse import unquote

from fastapi.routing import APIRoute
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.routing import Match

from service.http.prediction_exchange import (
    INFER,
    INFER_VERSION,
    PREDICT,
    hot_route,
    hot_target,
    query_of,
)

ROUTES = [
    APIRoute(path, endpoint=lambda: None, methods=["POST"])
    for path in (PREDICT, INFER, INFER_VERSION)
]


NAMES = ["digits", "a%20b", "a%2520b", "a%2Fb", "a%3Fb", "%C3%A9", "%FF"]
WORDS = ["predict", "%70redict", "Predict", "v2", "models", "modelsx", "versions", "infer", "ready"]
SEGMENTS = st.sampled_from([*WORDS, *NAMES, ""])
PATTERNS = st.sampled_from([route.path.split("/")[1:] for route in ROUTES])


@st.composite
def paths(draw) -> str:
    """Return the path of a prediction, or one that differs from it in up to two segments."""
    segments = [draw(SEGMENTS) if "{" in segment else segment for segment in draw(PATTERNS)]
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(segments)))
        n_replaced = draw(st.integers(0, 1))
        segments[place : place + n_replaced] = draw(st.lists(SEGMENTS, max_size=1))
    return "/" + "/".join(segments)


@settings(max_examples=200)
@given(paths())
def test_the_router_would_find_the_same(path) -> None:
    scope = {"type": "http", "method": "POST", "path": unquote(path)}
    matches = [(route.path, *route.matches(scope)) for route in ROUTES]
    expected = [
        (name, child["path_params"]) for name, match, child in matches if match is Match.FULL
    ]
    for found in (hot_target(path.encode()), hot_route(unquote(path))):
        assert ([(found.route, dict(found.parameters))] if found else []) == expected


TARGETS = {
    b"/predict?a=b": (PREDICT, b"a=b"),
    b"/predict?a=/?b": (PREDICT, b"a=/?b"),
    b"/predict#x?a=b": (PREDICT, b""),
    b"/predict?a#b": (PREDICT, b"a"),
    b"http://host/predict?a": (PREDICT, b"a"),
    b"/v2/models/" + b"x" * 1000 + b"/infer": (INFER, b""),
}
OTHERS = [b"/predict" + b"x" * 1000, b"/\xff/predict", b"host:80", b"*", b""]


def test_targets_may_have_a_query_a_fragment_and_a_host() -> None:
    for target, (route, query) in (TARGETS | dict.fromkeys(OTHERS, (None, b""))).items():
        found = hot_target(target)
        assert (found and found.route) == route
        assert query_of(target) == query
