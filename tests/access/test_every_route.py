"""Every route requires a key with the right scope, and shows nothing of other tenants."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from databases import scratch_schema
from fastapi.routing import APIRoute, iter_route_contexts
from keyed_service import address_of, keyed_service, logits_of, whole_request
from refusals import assert_refused
from runner_children import wait_until
from running_service import WAIT, calibrated, dry_run, evaluate
from starlette.routing import Mount, Route
from tenant_separation import forgotten_tenants

from service.access.api_keys import SCOPES
from service.access.route_table import OPEN, ROUTES, declared_route
from service.app import create_app
from service.http import prediction_exchange as hot
from service.settings import Settings

pytestmark = pytest.mark.process

CREATED, NO_CONTENT, NOT_FOUND = httpx.codes.CREATED, httpx.codes.NO_CONTENT, httpx.codes.NOT_FOUND
MALFORMED = "no%00such%ff@x"
# Forms of pages, which say that they are.
FORMS = dict.fromkeys([("POST", "/sign-in"), ("POST", "/sign-out")], httpx.codes.FORBIDDEN)
ROUTE_SCOPES = {key: rule.scopes for key, rule in ROUTES.items()}
ACTIONS = {key: rule.action for key, rule in ROUTES.items() if rule.action is not None}
GUARDED = [key for key, scopes in ROUTE_SCOPES.items() if scopes != OPEN]
NAMES_A_CALIBRATION = {
    key
    for key in GUARDED
    if "{calibration_id}" in key[1] or "{model_name}" in key[1] or key[1] in ("/report", "/predict")
}
DONE = {httpx.codes.OK, CREATED, httpx.codes.ACCEPTED, NO_CONTENT, httpx.codes.SEE_OTHER}
# The calibrations here are of outputs, without a model, and have ended; no document is imported.
REFUSED_FOR_ANOTHER_REASON = {
    "/model.onnx": httpx.codes.CONFLICT,
    "/cancel": httpx.codes.CONFLICT,
    "/model_data/{name}": NOT_FOUND,
    "/samples/{row}.png": NOT_FOUND,
    "/import": httpx.codes.UNPROCESSABLE_ENTITY,
}


def alone(scope: str) -> frozenset[str]:
    return frozenset({scope})


SINGLE = [alone(scope) for scope in SCOPES]


def and_read(scopes: frozenset[str]) -> frozenset[str]:
    return scopes | {"read"}


def all_but(scopes: frozenset[str]) -> frozenset[str]:
    return frozenset(SCOPES) - scopes


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


def test_every_route_declares_its_scopes_which_exist() -> None:
    found = routes_of_the_app()
    assert len(found) > 40
    # The page of a report has the address of the report.
    assert sorted(set(found)) == sorted(ROUTE_SCOPES)
    assert len(found) == len(ROUTE_SCOPES) + 1
    assert {("POST", path) for path in (hot.PREDICT, hot.INFER, hot.INFER_VERSION)} <= set(GUARDED)
    assert set().union(*ROUTE_SCOPES.values()) == set(SCOPES)
    opened = {key for key, scopes in ROUTE_SCOPES.items() if not scopes}
    assert {key for key in opened if key[0] not in ("GET", "HEAD")} == set(FORMS)


def test_the_first_route_that_matches_declares_the_scopes() -> None:
    """Where two patterns take one path, the one declared first is the router's as well."""
    for method, path in routes_of_the_app():
        concrete = path.replace(":path}", "/b").replace("{", "").replace("}", "")
        declared = declared_route(method, concrete)
        assert declared is not None
        assert declared.path == path


@dataclass
class Tenant:
    """A tenant, its clients by the scopes of their keys, and its calibration."""

    name: str
    clients: dict[frozenset[str], httpx.Client]
    everything: httpx.Client
    own: str = ""

    def copy(self) -> str:
        """Import the bins of its calibration; return the id of the copy."""
        bins = self.everything.get(f"/calibrations/{self.own}/bins").json()
        params = {"name": "copy"}
        return self.everything.post("/calibrations/import", json=bins, params=params).json()["id"]

    def evaluate(self) -> None:
        evaluate(self.everything, self.own, "again", logits_of()).raise_for_status()


@dataclass
class Two:
    ours: Tenant
    theirs: Tenant
    nobody: httpx.Client


@contextmanager
def two_tenants(folder: Path, *, whole: bool = True, **settings: str) -> Iterator[Two]:
    """Run a service; ``whole`` calibrations have a further set and an operating point."""
    with keyed_service(folder, **settings) as service:

        def tenant(name: str) -> Tenant:
            clients = {
                scopes: service.client(service.make(name, *scopes).text)
                for scopes in {
                    *SINGLE,
                    *map(and_read, SINGLE),
                    *map(all_but, ROUTE_SCOPES.values()),
                }
            }
            made = Tenant(name, clients, service.client(service.make_known(name).text))
            made.own = calibrated(made.everything, {"name": name}, calibration=logits_of())["id"]
            if whole:
                made.evaluate()
                point = "/calibrations/{calibration_id}/operating-points"
                ask(made.everything, "POST", point, made.own).raise_for_status()
            return made

        yield Two(tenant("ours"), tenant("theirs"), service.client())


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    with two_tenants(tmp_path_factory.mktemp("tenants")) as tenants:
        yield tenants


def ask(client: httpx.Client, method: str, path: str, calibration: str) -> httpx.Response:
    """Send a whole request of a route that names a calibration."""
    options = {"headers": WAIT} | whole_request(method, path, calibration)
    with client.stream(method, address_of(path, calibration), **options) as response:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.read()
        return response


@pytest.mark.parametrize(("method", "path"), GUARDED, ids=map(" ".join, GUARDED))
def test_each_route_takes_the_right_key_and_no_other(two: Two, method: str, path: str) -> None:
    """Without a key 401, with a key of other scopes 403, with that of another tenant 404.

    Keys that only write read nothing, and pages need a key that reads.
    Each change, and each refused attempt at one, leaves an entry in the audit log.
    """
    needed, ours = ROUTE_SCOPES[method, path], two.ours
    answer = ask(two.nobody, method, path, ours.own)
    assert answer.status_code == httpx.codes.UNAUTHORIZED
    assert answer.headers["www-authenticate"] == 'Bearer realm="howsure"'
    assert answer.json().get("error" if path.startswith("/v2") else "type")
    answer = ask(ours.clients[all_but(needed)], method, path, ours.own)
    assert answer.status_code == httpx.codes.FORBIDDEN, answer.text
    assert all(name in answer.text for name in needed)
    if (method, path) in ACTIONS:
        check_entry(ours, method, path, ours.own, answer)
    if (method, path) in NAMES_A_CALIBRATION:
        assert_theirs_is_nothing(two, method, path)
    for scope in needed:
        own = ours.name if path.startswith("/v2") else ours.own
        is_deletion = method == "DELETE" or (method, path[-7:]) == ("POST", "/delete")
        if is_deletion and "evaluation_name" not in path:
            own = ours.copy()
        client = ours.clients[alone(scope)]
        if path.startswith("/pages/"):
            if scope != "read":
                assert ask(client, method, path, own).status_code == httpx.codes.FORBIDDEN
            client = ours.clients[and_read(alone(scope))]
        answer = ask(client, method, path, own)
        if scope == "write" and answer.is_success and answer.content:
            assert answer.json().keys() <= {"id", "status", "location"}
        others = [code for end, code in REFUSED_FOR_ANOTHER_REASON.items() if path.endswith(end)]
        assert answer.status_code in (others or DONE)
        if (method, path) in ACTIONS:
            check_entry(ours, method, path, own, answer)
        if is_deletion and own == ours.own:
            ours.evaluate()


def test_a_dry_run_tells_a_writer_of_its_own_upload(two: Two) -> None:
    assert "findings" in dry_run(two.ours.clients[alone("write")], logits_of()).json()


def check_entry(
    tenant: Tenant, method: str, path: str, calibration: str, answer: httpx.Response
) -> None:
    """Check what the audit log has of an answer."""
    action, name = ACTIONS[method, path], answer.headers["X-Request-Id"]
    found: list[dict[str, Any]] = []

    def is_written() -> bool:
        entries = tenant.everything.get("/audit", params={"action": action}).json()["entries"]
        found.extend(entry for entry in entries if entry["request_id"] == name)
        return bool(found)

    assert wait_until(is_written)
    entry, is_done = found[0], answer.status_code in DONE
    result = "accepted" if is_done else "refused"
    assert (entry["result"], entry["code"] is None) == (result, is_done)
    assert entry["via"] == ("page" if path.startswith("/pages/") else "api")
    subject = calibration if "{calibration_id}" in path else None
    subject = f"{subject}/evaluations/again" if "{evaluation_name" in path else subject
    made = answer.json() if answer.status_code in (CREATED, httpx.codes.ACCEPTED) else {}
    if action == "evaluate" and made:
        subject = f"{calibration}/evaluations/{unquote(made['location'].rpartition('/')[2])}"
    elif action in ("calibrate", "refit") and is_done:
        subject = made["id"] if made else answer.headers["location"].rpartition("=")[2]
    assert entry["subject"] == subject


def client_for(tenant: Tenant, method: str, path: str) -> httpx.Client:
    scopes = alone(min(ROUTE_SCOPES[method, path]))
    return tenant.clients[and_read(scopes) if path.startswith("/pages/") else scopes]


def assert_theirs_is_nothing(two: Two, method: str, path: str) -> None:
    """In the same words as what never was: nothing tells whether another tenant has it."""
    nothing = "00000000-0000-4000-8000-000000000000"
    client = client_for(two.ours, method, path)
    texts = set()
    for calibration in (two.theirs.own, nothing):
        answer = ask(client, method, path, calibration)
        assert answer.status_code == NOT_FOUND, (calibration, answer.text)
        text = answer.text.replace(answer.headers["x-request-id"], "")
        texts.add(text.replace(calibration, ""))
    assert len(texts) == 1


# Of those that read a calibration, change one, predict, and show a page.
SAMPLE = [
    ("GET", "/calibrations/{calibration_id}"),
    ("DELETE", "/calibrations/{calibration_id}"),
    ("POST", "/calibrations/{calibration_id}/refit"),
    ("POST", "/calibrations/{calibration_id}/evaluations"),
    ("GET", "/report"),
    ("POST", "/predict"),
    ("POST", "/v2/models/{model_name}/infer"),
]


def test_what_is_there_no_longer_or_never_was_is_not_found(two: Two) -> None:
    deleted = two.ours.copy()
    deletion = two.ours.everything.delete(f"/calibrations/{deleted}")
    assert deletion.status_code == NO_CONTENT
    for method, path in SAMPLE:
        client = client_for(two.ours, method, path)
        for calibration in (deleted, two.theirs.name, MALFORMED):
            assert ask(client, method, path, calibration).status_code == NOT_FOUND
            refused = ask(two.nobody, method, path, calibration)
            assert refused.status_code == httpx.codes.UNAUTHORIZED


def test_row_security_alone_separates_tenants(tmp_path: Path, postgresql_database_url: str) -> None:
    """On PostgreSQL, where no query names a tenant."""
    with (
        scratch_schema(postgresql_database_url) as url,
        forgotten_tenants() as shortened,
        two_tenants(tmp_path, whole=False, database_url=url) as two,
    ):
        for method, path in SAMPLE:
            assert_theirs_is_nothing(two, method, path)
            if method == "GET" or not path.startswith("/calibrations"):
                client = client_for(two.theirs, method, path)
                named = two.theirs.name if path.startswith("/v2") else two.theirs.own
                assert ask(client, method, path, named).status_code in DONE
        assert_lists_hold_only_the_own(two)
    assert len(shortened) > 30


def test_open_routes_need_no_key_and_lists_hold_only_the_own(two: Two) -> None:
    assert_lists_hold_only_the_own(two)
    for method, path in ROUTE_SCOPES.keys() - set(GUARDED):
        file = "pages.css" if path.startswith("/pages") else "swagger-ui.css"
        answer = two.nobody.request(method, path.replace("{path:path}", file))
        assert answer.status_code == FORMS.get((method, path), httpx.codes.OK), path


def assert_lists_hold_only_the_own(two: Two) -> None:
    for tenant, other in ((two.ours, two.theirs), (two.theirs, two.ours)):
        index = tenant.everything.post("/v2/repository/index", json={})
        for listed in (tenant.everything.get("/calibrations"), index):
            assert tenant.name in listed.text
            assert other.name not in listed.text
            assert other.own not in listed.text


ALLOWED = {
    **dict.fromkeys([("POST", path) for path in ("/nothing", "/calibrations/", "/predict//")]),
    ("PUT", "/predict"): "POST",
    ("TRACE", "/calibrations/digits"): "DELETE, GET",
    ("PATCH", "/calibrations/digits/evaluations/a/b/cancel"): "POST",
    ("TRACE", "/healthz"): "GET",
}


def test_no_query_has_a_nul(two: Two) -> None:
    for address in ("/?q=%00", "/calibrations?name=a%00b", "/audit?subject=%00", "/healthz?x=%00"):
        assert_refused(two.ours.everything.get(address), "query", "NUL")


def test_unknown_paths_are_404_and_methods_405_with_a_key_and_401_without(two: Two) -> None:
    for (method, path), allowed in ALLOWED.items():
        answer = two.ours.everything.request(method, path)
        assert answer.headers.get("Allow") == allowed
        assert answer.status_code == (405 if allowed else NOT_FOUND)
        expected = 405 if path == "/healthz" else httpx.codes.UNAUTHORIZED  # which is open
        assert two.nobody.request(method, path).status_code == expected
