"""Every route requires a key with the right scope, and shows nothing of other tenants."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import httpx
import pytest
from databases import scratch_schema
from fastapi.routing import APIRoute, iter_route_contexts
from keyed_service import PAGE, address_of, keyed_service, logits_of, whole_request
from running_service import WAIT, calibrated, evaluate
from starlette.routing import Mount, Route
from tenant_separation import forgotten_tenants

from service.access.api_keys import SCOPES
from service.access.route_table import OPEN, ROUTES, declared_route
from service.app import create_app
from service.http import prediction_exchange as hot
from service.settings import Settings

CREATED, NO_CONTENT, NOT_FOUND = httpx.codes.CREATED, httpx.codes.NO_CONTENT, httpx.codes.NOT_FOUND
MANY = 100
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


def test_every_route_declares_its_scopes() -> None:
    found = routes_of_the_app()
    assert len(found) > 40
    # The page of a report has the address of the report.
    assert sorted(set(found)) == sorted(ROUTE_SCOPES)
    assert len(found) == len(ROUTE_SCOPES) + 1
    assert {("POST", path) for path in (hot.PREDICT, hot.INFER, hot.INFER_VERSION)} <= set(GUARDED)


def test_declared_scopes_exist() -> None:
    assert set().union(*ROUTE_SCOPES.values()) == set(SCOPES)
    opened = {key for key, scopes in ROUTE_SCOPES.items() if not scopes}
    assert {key for key in opened if key[0] not in ("GET", "HEAD")} == set(TOKENS)


def test_the_first_route_that_matches_declares_the_scopes() -> None:
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
        """Return the id of a calibration with a further set and an operating point."""
        client = self.everything
        made = calibrated(client, {"name": self.name}, calibration=logits_of())["id"]
        assert evaluate(client, made, "again", logits_of()).status_code == CREATED
        address = f"/calibrations/{made}/operating-points"
        decided = client.post(address, **whole_request("POST", "/operating-points", made))
        assert decided.status_code == CREATED
        return made


@dataclass
class Two:
    ours: Tenant
    theirs: Tenant
    nobody: httpx.Client


WHOLE, FORGETFUL = "sqlite", "postgresql, no query names a tenant"


@pytest.fixture(scope="module", params=[WHOLE, FORGETFUL])
def two(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    """Two tenants of a service; the second service has nothing but row-level security."""
    with ExitStack() as stack:
        options = {}
        if request.param == FORGETFUL:
            schema = scratch_schema(request.getfixturevalue("postgresql_database_url"))
            options["database_url"] = stack.enter_context(schema)
            shortened = stack.enter_context(forgotten_tenants())
        folder = tmp_path_factory.mktemp("tenants")
        service = stack.enter_context(keyed_service(folder, **options))

        def tenant(name: str) -> Tenant:
            clients = {scope: service.client(service.make(name, scope).text) for scope in SCOPES}
            made = Tenant(name, clients, service.client(service.make_known(name).text))
            made.own, made.deleted = made.calibrate(), made.calibrate()
            deletion = made.everything.delete(f"/calibrations/{made.deleted}")
            assert deletion.status_code == NO_CONTENT
            return made

        yield Two(tenant("ours"), tenant("theirs"), service.client())
        assert request.param == WHOLE or len(shortened) > MANY


def ask(client: httpx.Client, method: str, path: str, calibration: str) -> httpx.Response:
    """Send a whole request of a route that names a calibration."""
    options = {"headers": WAIT} | whole_request(method, path, calibration)
    with client.stream(method, address_of(path, calibration), **options) as response:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.read()
        return response


@each_of(GUARDED)
def test_requests_without_the_right_key_are_refused(two: Two, method: str, path: str) -> None:
    """Without a key 401, with a key of other scopes 403, with that of another tenant 404."""
    needed, ours = ROUTE_SCOPES[method, path], two.ours
    everybodys = (ours.own, ours.deleted, MALFORMED)
    for calibration in everybodys:
        answer = ask(two.nobody, method, path, calibration)
        assert answer.status_code == httpx.codes.UNAUTHORIZED
        assert answer.headers["www-authenticate"] == 'Bearer realm="howsure"'
        assert answer.json().get("error" if path.startswith("/v2") else "type")
    for scope in set(SCOPES) - needed:
        for calibration in (*everybodys, two.theirs.own):
            answer = ask(ours.clients[scope], method, path, calibration)
            assert answer.status_code == httpx.codes.FORBIDDEN, (scope, answer.text)
            assert all(name in answer.text for name in needed)
    for scope in needed if (method, path) in NAMES_A_CALIBRATION else ():
        for calibration in (two.theirs.own, ours.deleted, two.theirs.name, MALFORMED):
            answer = ask(ours.clients[scope], method, path, calibration)
            assert answer.status_code == NOT_FOUND, (calibration, answer.text)
        # In the same words as what never was: nothing tells whether another tenant has it.
        nothing = "00000000-0000-4000-8000-000000000000"
        texts = {
            in_words(ask(ours.clients[scope], method, path, name)).replace(name, "")
            for name in (nothing, two.theirs.own)
        }
        assert len(texts) == 1


def in_words(answer: httpx.Response) -> str:
    """Return what it says but for the name of the request."""
    return answer.text.replace(answer.headers["x-request-id"], "")


@each_of(GUARDED)
def test_requests_with_a_key_of_the_scope_succeed(two: Two, method: str, path: str) -> None:
    """What deletes has a calibration of its own."""
    for scope in ROUTE_SCOPES[method, path]:
        own = two.ours.name if path.startswith("/v2") else two.ours.own
        if method == "DELETE" or (method == "POST" and path.endswith("/delete")):
            own = two.ours.calibrate()
        answer = ask(two.ours.clients[scope], method, path, own)
        assert answer.status_code in REFUSED_FOR_ANOTHER_REASON.get((method, path), DONE)


@each_of([key for key in ROUTE_SCOPES if key not in GUARDED])
def test_open_routes_need_no_key(two: Two, method: str, path: str) -> None:
    file = "pages.css" if path.startswith("/pages") else "swagger-ui.css"
    address = path.replace("{path:path}", file)
    answer = two.nobody.request(method, address)
    assert answer.status_code == TOKENS.get((method, path), httpx.codes.OK)


def test_lists_hold_only_the_own_calibrations(two: Two) -> None:
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
    """Names and idempotency keys are of one tenant."""
    files = [("calibration", ("c.csv", logits_of())), ("config", (None, '{"name": "shared"}'))]
    headers = WAIT | {"Idempotency-Key": "one"}
    tenants = (two.ours, two.theirs)
    made = [one.everything.post("/calibrate", files=files, headers=headers) for one in tenants]
    assert [answer.json()["version"] for answer in made] == [1, 1]
    assert len({answer.json()["id"] for answer in made}) == 2
    assert two.ours.everything.delete("/calibrations/shared").status_code == NO_CONTENT
    body = {"calibration": "shared", "logits": [[3, 0, 0]]}
    assert two.ours.everything.post("/predict", json=body).status_code == NOT_FOUND
    answer = two.theirs.everything.post("/predict", json=body)
    assert answer.json()["calibration"]["id"] == made[1].json()["id"]


def test_an_unknown_path_is_404_with_a_key_and_401_without(two: Two) -> None:
    for path in ("/nothing", "/calibrations/", "/predict/", "/predict//", "/v2/models"):
        assert two.nobody.post(path).status_code == httpx.codes.UNAUTHORIZED
        assert two.ours.everything.post(path).status_code == NOT_FOUND


def test_an_unsupported_method_is_405_with_a_key_and_401_without(two: Two) -> None:
    for method, path, allowed in (
        ("PUT", "/predict", "POST"),
        ("TRACE", "/calibrations/digits", "DELETE, GET"),
        ("PATCH", "/calibrations/digits/evaluations/a/b/cancel", "POST"),
        ("POST", "/v2/models/digits", "GET"),
        ("TRACE", "/healthz", "GET"),
    ):
        known = two.ours.everything.request(method, path)
        assert known.status_code == httpx.codes.METHOD_NOT_ALLOWED, path
        assert known.headers["Allow"] == allowed
        is_open = path == "/healthz"
        expected = httpx.codes.METHOD_NOT_ALLOWED if is_open else httpx.codes.UNAUTHORIZED
        assert two.nobody.request(method, path).status_code == expected, path
