"""What is changed, or refused to be, stands in the audit table: by whom, what, and how it ended."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from keyed_service import KeyedService, keyed_service, logits_of

from service.access.api_keys import SCOPES
from service.access.route_table import ROUTES

# A guard against hanging.
WITHIN_SECONDS = 60.0
WAIT = {"Prefer": "wait=30"}
# They take a body to ask with, and change nothing.
ASKED_BY_POST = {
    ("POST", "/predict"),
    ("POST", "/v2/models/{model_name}/infer"),
    ("POST", "/v2/models/{model_name}/versions/{model_version}/infer"),
    ("POST", "/v2/repository/index"),
    ("POST", "/pages/calibrations/{calibration_id}/try"),
}
# They write of themselves: whoever signs in is not known before.
SIGNING = {("POST", "/sign-in"), ("POST", "/sign-out")}
UNNAMED = ASKED_BY_POST | SIGNING
READS = frozenset({"GET", "HEAD", "OPTIONS"})
ACTIONS = {key: rule.action for key, rule in ROUTES.items() if rule.action is not None}
CHANGES = [key for key in ROUTES if key[0] not in READS and key not in UNNAMED]


@dataclass
class Audited:
    service: KeyedService
    everything: httpx.Client
    key_ids: dict[str, str] = field(default_factory=dict)
    clients: dict[str, httpx.Client] = field(default_factory=dict)

    def entries(self, **asked: Any) -> list[dict[str, Any]]:
        answer = self.everything.get("/audit", params={"limit": 1000} | asked)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()["entries"]

    def calibrate(self) -> str:
        parts = [("calibration", ("c.csv", logits_of()))]
        made = self.everything.post("/calibrate", files=parts, headers=WAIT)
        assert made.status_code == httpx.codes.CREATED, made.text
        return made.json()["id"]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    with keyed_service(tmp_path_factory.mktemp("audited")) as service:
        all_scopes = service.make("lab")
        found = Audited(service, service.client(all_scopes.text), {"all": all_scopes.id})
        for scope in SCOPES:
            made = service.make("lab", scope)
            found.key_ids[scope] = made.id
            found.clients[scope] = service.client(made.text)
        until(lambda: found.clients["admin"].get("/audit").status_code == httpx.codes.OK)
        yield found


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_every_route_that_changes_something_has_a_name() -> None:
    assert set(CHANGES) == set(ACTIONS)


def ask(client: httpx.Client, method: str, path: str, calibration: str, audited: Audited) -> Any:
    """Ask for a change that is done if ``calibration`` is one that allows it."""
    options: dict[str, Any] = {"headers": WAIT}
    a_set = [("evaluation", ("e.csv", logits_of())), ("name", (None, "again"))]
    match path.rsplit("/", 1)[1]:
        case "calibrate":
            options["files"] = [("calibration", ("c.csv", logits_of()))]
        case "import":
            options["json"] = audited.everything.get(f"/calibrations/{calibration}/bins").json()
        case "refit":
            options["json"] = {"bins": 5}
        case "evaluations":
            options["files"] = a_set
        case "operating-points" | "withdraw":
            form = {"author": "somebody", "reason": "to see"}
            if not path.endswith("withdraw"):
                form |= {"name": "automatic", "by": "coverage", "coverage": "50"}
            options["data"] = form
            if not path.startswith("/pages/"):
                asked = {"coverage": 0.5} if form.pop("by", None) else {}
                options = {"headers": WAIT, "json": form | asked}
    address = path.replace("{calibration_id}", calibration)
    return client.request(method, address.replace("{evaluation_name:path}", "again"), **options)


@pytest.mark.parametrize(("method", "path"), CHANGES, ids=[" ".join(key) for key in CHANGES])
def test_each_change_leaves_a_row_and_each_refusal_one(audited, method: str, path: str) -> None:
    action = ACTIONS[method, path]
    calibration = audited.calibrate()
    if path.endswith("{evaluation_name:path}"):
        address = "/calibrations/{calibration_id}/evaluations"
        ask(audited.everything, "POST", address, calibration, audited).raise_for_status()
    if path.endswith("/withdraw"):
        address = path.removeprefix("/pages").removesuffix("/withdraw")
        ask(audited.everything, "POST", address, calibration, audited).raise_for_status()
    before = {entry["id"] for entry in audited.entries(action=action)}

    refused = ask(audited.clients["read"], method, path, calibration, audited)
    assert refused.status_code == httpx.codes.FORBIDDEN
    new: list[dict[str, Any]] = []

    def is_there(n: int) -> bool:
        new[:] = [e for e in audited.entries(action=action) if e["id"] not in before]
        return len(new) == n

    until(lambda: is_there(1))
    about = None
    if "{calibration_id}" in path:
        about = calibration + ("/evaluations/again" if "{evaluation_name" in path else "")
    via = "page" if path.startswith("/pages/") else "api"
    row = {"via": via, "key_id": audited.key_ids["read"], "action": action, "subject": about}
    row |= {"request_id": refused.headers["X-Request-Id"]}
    assert new[0].items() >= (row | {"result": "refused", "code": "forbidden"}).items()

    answer = ask(audited.clients["write"], method, path, calibration, audited)
    if action.startswith("cancel"):
        # What has ended cannot be cancelled, and nothing here runs for long.
        code = "conflict" if action == "cancel" else "not-found"
        expected = {"result": "refused", "code": code, "subject": about}
    else:
        assert answer.status_code < 400, answer.text
        if path == "/pages/calibrate":
            about = answer.headers["location"].rpartition("=")[2]
        elif action in ("calibrate", "import", "refit"):
            about = answer.json()["id"]
        elif action == "evaluate":
            about = f"{calibration}/evaluations/again"
        expected = {"result": "accepted", "code": None, "subject": about}
    until(lambda: is_there(2))
    row |= {"request_id": answer.headers["X-Request-Id"], "key_id": audited.key_ids["write"]}
    assert new[0].items() >= (row | expected).items()


def test_reads_and_predictions_leave_none(audited) -> None:
    calibration = audited.calibrate()
    before = audited.entries()
    for path in ("/calibrations", f"/calibrations/{calibration}", "/metrics", "/models", "/audit"):
        assert audited.everything.get(path).status_code == httpx.codes.OK
        audited.clients["predict"].get(path)
    body = {"calibration": calibration, "logits": [[3, 0, 0]]}
    for client in (audited.everything, audited.clients["read"]):
        client.post("/predict", json=body)
    audited.everything.post("/v2/repository/index", json={})
    assert audited.entries() == before


def test_a_dry_run_and_a_repeat_change_nothing_and_leave_none(audited) -> None:
    parts = [("calibration", ("c.csv", logits_of()))]
    keyed = WAIT | {"Idempotency-Key": "audited"}
    made = audited.everything.post("/calibrate", files=parts, headers=keyed).json()["id"]
    before = audited.entries()
    again = audited.everything.post("/calibrate", files=parts, headers=keyed)
    assert again.headers["Idempotency-Replayed"] == "true"
    tried = audited.everything.post("/calibrate", files=parts, params={"dry_run": "true"})
    assert tried.status_code == httpx.codes.OK
    assert audited.entries() == before
    assert [e["action"] for e in audited.entries(subject=made)] == ["calibrate"]


def test_what_is_refused_for_another_reason_says_which(audited) -> None:
    before = {entry["id"] for entry in audited.entries()}
    audited.everything.post("/calibrations/nothing/promote")
    audited.everything.post("/calibrate", content=b"not a form")
    audited.everything.post("/calibrations/%00%1b%ff/promote")

    def new() -> list[tuple[str, str, str]]:
        found = [e for e in audited.entries(result="refused") if e["id"] not in before]
        return sorted((e["action"], e["code"], str(e["subject"])) for e in found)

    expected = [
        ("calibrate", "unsupported-format", "None"),
        ("promote", "not-found", "??\ufffd"),
        ("promote", "not-found", "nothing"),
    ]
    until(lambda: len(new()) == len(expected))
    assert new() == expected


def test_nobody_leaves_none(audited) -> None:
    """Whoever is not known writes nothing, whatever number of requests is sent."""
    before = {entry["id"] for entry in audited.entries()}
    for key in (None, "cal_nobody"):
        audited.service.client(key).post("/calibrate", content=b"")
    audited.calibrate()
    new: list[dict[str, Any]] = []

    def is_there() -> bool:
        new[:] = [entry for entry in audited.entries() if entry["id"] not in before]
        return bool(new)

    until(is_there)
    # Entries are written in turn: those of nobody would be there before this one.
    assert [entry["action"] for entry in new] == ["calibrate"]


def test_a_tenant_reads_its_own_rows(audited) -> None:
    calibration = audited.calibrate()
    other = audited.service.client(audited.service.make("elsewhere").text)
    until(lambda: other.get("/audit").status_code == httpx.codes.OK)
    theirs = other.get("/audit").json()["entries"]
    assert [entry["action"] for entry in theirs] == ["create-key"]
    assert calibration not in other.get("/audit").text


def test_pages_lead_through_all_of_it(audited) -> None:
    whole = [entry["id"] for entry in audited.entries()]
    found, cursor = [], None
    while cursor is not None or not found:
        page = {"limit": 5} | ({} if cursor is None else {"cursor": cursor})
        answer = audited.everything.get("/audit", params=page).json()
        found += [entry["id"] for entry in answer["entries"]]
        cursor = answer["next_cursor"]
        if cursor is None:
            break
    assert found == whole


@pytest.mark.parametrize(
    "asked", [{"cursor": "x"}, {"limit": 0}, {"result": "maybe"}, {"since": "2026-01-01T00:00:00"}]
)
def test_a_filter_that_is_none_is_refused(audited, asked) -> None:
    assert audited.everything.get("/audit", params=asked).status_code == 422


def test_an_open_service_writes_who_is_anybody(tmp_path) -> None:
    with keyed_service(tmp_path, first=False) as service:
        client = service.client()
        foreign = client.post(
            "/calibrations/nothing/promote", headers={"Origin": "http://a.example"}
        )
        assert foreign.json()["type"].endswith(":foreign-site")
        client.post("/calibrations/nothing/promote")
        until(lambda: len(client.get("/audit").json()["entries"]) == 1)
        [entry] = client.get("/audit").json()["entries"]
        assert (entry["key_id"], entry["via"], entry["code"]) == (None, "api", "not-found")
