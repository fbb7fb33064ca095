"""Every route asks for a key of the right scope, and knows nothing of what other tenants have."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute, iter_route_contexts
from keyed_service import keyed_service, logits_of
from starlette.routing import Mount, Route

from service.access.api_keys import SCOPES
from service.access.route_table import OPEN, ROUTES, declared_route
from service.app import create_app
from service.http import prediction_exchange as hot
from service.settings import Settings

CREATED, NO_CONTENT, NOT_FOUND = httpx.codes.CREATED, httpx.codes.NO_CONTENT, httpx.codes.NOT_FOUND
# A guard against hanging.
WITHIN_SECONDS = 60.0
WAIT = {"Prefer": "wait=30"}
DECISION = {"author": "somebody", "reason": "to see"}
PAGE = "/pages/calibrations/{calibration_id}"
MALFORMED = "no%00such%ff@x"
# Forms of who is not known yet, which ask for a token of the page they are on.
TOKENS = {("POST", "/sign-in"): httpx.codes.FORBIDDEN, ("POST", "/sign-out"): httpx.codes.SEE_OTHER}
ROUTE_SCOPES = {key: rule.scopes for key, rule in ROUTES.items()}
GUARDED = [key for key, scopes in ROUTE_SCOPES.items() if scopes != OPEN]
NAMES_A_CALIBRATION = {
    key
    for key in GUARDED
    if "{calibration_id}" in key[1] or "{model_name}" in key[1] or key[1] in ("/report", "/predict")
}
DONE = {httpx.codes.OK, CREATED, httpx.codes.ACCEPTED, NO_CONTENT, httpx.codes.SEE_OTHER}
# The calibrations here are of outputs, without a model, and have ended; no document is imported.
REFUSED_FOR_ANOTHER_REASON = {
    ("GET", "/calibrations/{calibration_id}/model.onnx"): {httpx.codes.CONFLICT},
    ("GET", "/calibrations/{calibration_id}/model_data/{name}"): {NOT_FOUND},
    ("POST", "/calibrations/{calibration_id}/cancel"): {httpx.codes.CONFLICT},
    ("POST", "/calibrations/{calibration_id}/evaluations/{evaluation_name:path}/cancel"): {
        httpx.codes.CONFLICT
    },
    ("GET", "/pages/calibrations/{calibration_id}/samples/{row}.png"): {NOT_FOUND},
    ("POST", f"{PAGE}/cancel"): {httpx.codes.CONFLICT},
    ("POST", f"{PAGE}/evaluations/{{evaluation_name:path}}/cancel"): {httpx.codes.CONFLICT},
    ("POST", "/calibrations/import"): {httpx.codes.UNPROCESSABLE_ENTITY},
}


def each_of(routes: Sequence[tuple[str, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("method", "path"), routes, ids=[" ".join(r) for r in routes])


def routes_of_the_app() -> list[tuple[str, str]]:
    """Return every method and path that the router knows, in its order."""
    found = []
    for route in iter_route_contexts(create_app(Settings(_env_file=None)).routes):
        path = route.path or ""
        if isinstance(route.original_route, Mount):
            found += [(method, f"{path}/{{path:path}}") for method in ("GET", "HEAD")]
        else:
            assert isinstance(route.original_route, APIRoute | Route), route
            found += [(method, path) for method in sorted(route.methods or ())]
    return found


def test_every_route_declares_what_it_asks_for() -> None:
    found = routes_of_the_app()
    assert len(found) > 40
    # The page of a report has the address of the report.
    assert sorted(set(found)) == sorted(ROUTE_SCOPES)
    assert len(found) == len(ROUTE_SCOPES) + 1
    assert {("POST", path) for path in (hot.PREDICT, hot.INFER, hot.INFER_VERSION)} <= set(GUARDED)


def test_scopes_are_those_that_there_are() -> None:
    assert set().union(*ROUTE_SCOPES.values()) == set(SCOPES)
    opened = {key for key, scopes in ROUTE_SCOPES.items() if not scopes}
    assert {key for key in opened if key[0] not in ("GET", "HEAD")} == set(TOKENS)


def test_what_the_router_tries_first_is_what_is_asked_for() -> None:
    """Where two patterns take one path, the one declared first is the router's as well."""
    for method, path in routes_of_the_app():
        concrete = path.replace(":path}", "/b").replace("{", "").replace("}", "")
        declared = declared_route(method, concrete)
        assert declared is not None
        assert declared.path == path


@dataclass
class Tenant:
    """A tenant, its clients by scope, and the calibrations that it has or had."""

    name: str
    clients: dict[str, httpx.Client]
    everything: httpx.Client
    own: str = ""
    deleted: str = ""

    def calibrate(self) -> str:
        parts = [
            ("calibration", ("c.csv", logits_of())),
            ("config", (None, f'{{"name": "{self.name}"}}')),
        ]
        made = self.everything.post("/calibrate", files=parts, headers=WAIT)
        assert made.status_code == CREATED, made.text
        assert made.json()["status"] == "succeeded", made.text
        set_ = [("evaluation", ("e.csv", logits_of())), ("name", (None, "again"))]
        address = f"/calibrations/{made.json()['id']}/evaluations"
        assert self.everything.post(address, files=set_, headers=WAIT).status_code == CREATED
        decided = whole_request("POST", "/operating-points", made.json()["id"])
        address = f"/calibrations/{made.json()['id']}/operating-points"
        assert self.everything.post(address, **decided).status_code == CREATED
        return made.json()["id"]


@dataclass
class Two:
    ours: Tenant
    theirs: Tenant
    nobody: httpx.Client


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    with keyed_service(tmp_path_factory.mktemp("tenants")) as service:

        def tenant(name: str) -> Tenant:
            clients = {scope: service.client(service.make(name, scope).text) for scope in SCOPES}
            made = Tenant(name, clients, service.client(service.make(name).text))
            until = time.monotonic() + WITHIN_SECONDS
            while made.everything.get("/calibrations").status_code != httpx.codes.OK:
                assert time.monotonic() < until
                time.sleep(0.02)
            made.own, made.deleted = made.calibrate(), made.calibrate()
            deletion = made.everything.delete(f"/calibrations/{made.deleted}")
            assert deletion.status_code == NO_CONTENT
            return made

        yield Two(tenant("ours"), tenant("theirs"), service.client())


def whole_request(method: str, path: str, calibration: str) -> dict[str, Any]:
    """Return what a route takes beside its path; the first end of a path that fits tells."""
    set_ = ("evaluation", ("e.csv", logits_of()))
    tensor = {"name": "logits", "datatype": "FP32", "shape": [1, 3], "data": [3, 0, 0]}
    options: dict[tuple[str, str], dict[str, Any]] = {
        ("POST", "/calibrate"): {"files": [("calibration", ("c.csv", logits_of()))]},
        ("POST", "/calibrations/import"): {"json": {}},
        ("POST", "/predict"): {"json": {"calibration": calibration, "logits": [[3, 0, 0]]}},
        ("GET", "/report"): {"params": {"calibration": calibration}},
        ("POST", "/infer"): {"json": {"inputs": [tensor]}},
        ("POST", "/refit"): {"json": {"bins": 2}},
        ("GET", "/preview"): {"params": {"coverage": 0.5}},
        ("POST", f"{PAGE}/operating-points"): {
            "data": DECISION | {"name": "automatic", "by": "coverage", "coverage": "50"}
        },
        ("POST", f"{PAGE}/operating-points/withdraw"): {"data": DECISION},
        ("POST", "/operating-points"): {"json": DECISION | {"name": "automatic", "coverage": 0.5}},
        ("POST", "/withdraw"): {"json": DECISION},
        ("POST", "/try"): {"files": [("numbers", (None, "[3, 0, 0]"))]},
        ("POST", "/evaluations"): {
            "files": [set_, ("name", (None, f"set of {time.monotonic_ns()}"))]
        },
    }
    of_route = [o for (m, end), o in options.items() if m == method and path.endswith(end)]
    return of_route[0] if of_route else {}


def ask(client: httpx.Client, method: str, path: str, calibration: str) -> httpx.Response:
    """Send a request that a calibration can be named in; its body is a whole one."""
    options = {"headers": WAIT} | whole_request(method, path, calibration)
    address = path.replace("{calibration_id}", calibration).replace("{model_name}", calibration)
    address = address.replace("{chart}/{key}", "odds_ratio/1.svg").replace("{row}", "0")
    address = address.replace("{evaluation_name:path}", "again").replace("{model_version}", "1")
    with client.stream(method, address.replace("{name}", "x"), **options) as response:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.read()
        return response


@each_of(GUARDED)
def test_a_request_without_a_key_is_asked_for_one(two: Two, method: str, path: str) -> None:
    for calibration in (two.ours.own, two.ours.deleted, MALFORMED):
        answer = ask(two.nobody, method, path, calibration)
        assert answer.status_code == httpx.codes.UNAUTHORIZED
        assert answer.headers["www-authenticate"] == 'Bearer realm="howsure"'
        below = path.startswith("/v2")
        assert answer.json().get("error" if below else "type")


@each_of(GUARDED)
def test_a_key_of_other_scopes_may_not(two: Two, method: str, path: str) -> None:
    for scope in set(SCOPES) - ROUTE_SCOPES[method, path]:
        for calibration in (two.ours.own, two.theirs.own, two.ours.deleted, MALFORMED):
            answer = ask(two.ours.clients[scope], method, path, calibration)
            assert answer.status_code == httpx.codes.FORBIDDEN, (scope, answer.text)
            assert all(needed in answer.text for needed in ROUTE_SCOPES[method, path])


@each_of([key for key in GUARDED if key in NAMES_A_CALIBRATION])
def test_what_others_have_is_not_there(two: Two, method: str, path: str) -> None:
    """In the same words as what never was: nothing tells whether somebody else has it."""
    for scope in ROUTE_SCOPES[method, path]:
        client = two.ours.clients[scope]
        nothing = "00000000-0000-4000-8000-000000000000"
        for calibration in (two.theirs.own, two.ours.deleted, two.theirs.name, MALFORMED):
            answer = ask(client, method, path, calibration)
            assert answer.status_code == NOT_FOUND, (calibration, answer.text)
            if calibration == two.theirs.own:
                never = ask(client, method, path, nothing)
                assert in_words(never).replace(nothing, calibration) == in_words(answer)


def in_words(answer: httpx.Response) -> str:
    """Return what it says but for the name of the request."""
    return answer.text.replace(answer.headers["x-request-id"], "")


@each_of(GUARDED)
def test_a_key_of_the_scope_may(two: Two, method: str, path: str) -> None:
    """What deletes has a calibration of its own."""
    for scope in ROUTE_SCOPES[method, path]:
        own = two.ours.name if path.startswith("/v2") else two.ours.own
        if method == "DELETE":
            own = two.ours.calibrate()
        answer = ask(two.ours.clients[scope], method, path, own)
        assert answer.status_code in REFUSED_FOR_ANOTHER_REASON.get((method, path), DONE)


@each_of([key for key in ROUTE_SCOPES if key not in GUARDED])
def test_what_is_open_needs_no_key(two: Two, method: str, path: str) -> None:
    file = "pages.css" if path.startswith("/pages") else "swagger-ui.css"
    address = path.replace("{path:path}", file)
    answer = two.nobody.request(method, address)
    assert answer.status_code == TOKENS.get((method, path), httpx.codes.OK)


def test_lists_hold_what_is_ones_own(two: Two) -> None:
    for tenant, other in ((two.ours, two.theirs), (two.theirs, two.ours)):
        client = tenant.everything
        for listed in (
            client.get("/calibrations"),
            client.get("/v2/models/stats"),
            client.post("/v2/repository/index", json={}),
        ):
            assert tenant.name in listed.text
            assert other.name not in listed.text
            assert other.own not in listed.text


def test_what_is_written_for_one_tenant_changes_nothing_of_another(two: Two) -> None:
    """The same name has versions of its own for each."""
    name = {"name": "shared"}
    parts = [
        ("calibration", ("c.csv", logits_of())),
        ("config", (None, str(name).replace("'", '"'))),
    ]
    made = [
        tenant.everything.post("/calibrate", files=parts, headers=WAIT | {"Idempotency-Key": "one"})
        for tenant in (two.ours, two.theirs)
    ]
    assert [answer.json()["version"] for answer in made] == [1, 1]
    assert len({answer.json()["id"] for answer in made}) == 2
    assert two.ours.everything.delete("/calibrations/shared").status_code == NO_CONTENT
    body = {"calibration": "shared", "logits": [[3, 0, 0]]}
    assert two.ours.everything.post("/predict", json=body).status_code == NOT_FOUND
    answer = two.theirs.everything.post("/predict", json=body)
    assert answer.json()["calibration"]["id"] == made[1].json()["id"]


def test_a_path_that_is_none_is_none_with_a_key_and_asks_for_one_without(two: Two) -> None:
    for path in ("/nothing", "/calibrations/", "/predict/", "/predict//", "/v2/models"):
        assert two.nobody.post(path).status_code == httpx.codes.UNAUTHORIZED
        assert two.ours.everything.post(path).status_code == NOT_FOUND


def test_another_method_is_told_which_there_are_once_it_is_known_who_asks(two: Two) -> None:
    for path, is_open in (("/predict", False), ("/calibrations/digits", False), ("/healthz", True)):
        unknown = two.nobody.request("TRACE", path)
        known = two.ours.everything.request("TRACE", path)
        assert known.status_code == httpx.codes.METHOD_NOT_ALLOWED, path
        assert known.headers["Allow"] in ("POST", "DELETE, GET", "GET")
        expected = httpx.codes.METHOD_NOT_ALLOWED if is_open else httpx.codes.UNAUTHORIZED
        assert unknown.status_code == expected, path
