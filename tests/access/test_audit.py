"""Changes, and refused attempts at them, are in the audit log: who, what, and the result."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from keyed_service import KeyedService, address_of, keyed_service, logits_of, whole_request
from runner_children import wait_until
from running_service import WAIT, calibrated, evaluate, quick_config

from service.access.guard import MOST_REFUSALS
from service.access.route_table import ROUTES

pytestmark = pytest.mark.process

# They take a body to ask with, and change nothing; or write of themselves: whoever signs in is not
# known before.
UNNAMED = ("/predict", "/infer", "/index", "/try", "/sign-in", "/sign-out")
READS = ("GET", "HEAD", "OPTIONS")
ACTIONS = {key: rule.action for key, rule in ROUTES.items() if rule.action is not None}
CHANGES = [key for key in ROUTES if key[0] not in READS and not key[1].endswith(UNNAMED)]


@dataclass
class Audited:
    service: KeyedService
    everything: httpx.Client
    key_ids: dict[str, str] = field(default_factory=dict)
    clients: dict[str, httpx.Client] = field(default_factory=dict)
    calibration: str = ""

    def entries(self, **filters: Any) -> list[dict[str, Any]]:
        answer = self.everything.get("/audit", params={"limit": 1000} | filters)
        return answer.raise_for_status().json()["entries"]

    def since_now(self, **filters: Any) -> Callable[[], list[dict[str, Any]]]:
        """Return what returns the entries that came after this call."""
        before = {entry["id"] for entry in self.entries(**filters)}
        return lambda: [entry for entry in self.entries(**filters) if entry["id"] not in before]

    def calibrate(self) -> str:
        """Return the id of a calibration with a further set."""
        made = calibrated(self.everything, calibration=logits_of())["id"]
        evaluate(self.everything, made, "again", logits_of()).raise_for_status()
        return made

    def ask(self, client: httpx.Client, method: str, path: str, calibration: str) -> httpx.Response:
        """Ask for a change, which is done if ``calibration`` is one that allows it."""
        options = whole_request(method, path, calibration)
        if path.endswith("/import"):
            bins = self.everything.get(f"/calibrations/{calibration}/bins")
            options = {"json": bins.json()}
        return client.request(method, address_of(path, calibration), headers=WAIT, **options)


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    with keyed_service(tmp_path_factory.mktemp("audited")) as service:
        setup = Audited(service, service.client(service.make("lab").text))
        for scope in ("read", "predict", "write"):
            key = service.make_known("lab", scope)
            setup.key_ids[scope] = key.id
            setup.clients[scope] = service.client(key.text)
        setup.calibration = setup.calibrate()
        yield setup


def test_every_route_that_changes_something_has_a_name() -> None:
    assert set(CHANGES) == set(ACTIONS)


@pytest.mark.parametrize(("method", "path"), CHANGES, ids=[" ".join(key) for key in CHANGES])
def test_each_change_and_each_refusal_leaves_an_entry(audited, method: str, path: str) -> None:
    action = ACTIONS[method, path]
    is_deletion = method == "DELETE" or path.endswith("/delete")
    calibration = audited.calibrate() if is_deletion else audited.calibration
    if path.endswith("/withdraw"):
        address = path.removeprefix("/pages").removesuffix("/withdraw")
        audited.ask(audited.everything, "POST", address, calibration).raise_for_status()
    new = audited.since_now(action=action)

    refused = audited.ask(audited.clients["read"], method, path, calibration)
    assert refused.status_code == httpx.codes.FORBIDDEN
    assert wait_until(lambda: len(new()) == 1)
    about = None
    if "{calibration_id}" in path:
        about = calibration + ("/evaluations/again" if "{evaluation_name" in path else "")
    via = "page" if path.startswith("/pages/") else "api"
    row = {"via": via, "key_id": audited.key_ids["read"], "action": action, "subject": about}
    row |= {"request_id": refused.headers["X-Request-Id"]}
    assert new()[0].items() >= (row | {"result": "refused", "code": "forbidden"}).items()

    answer = audited.ask(audited.clients["write"], method, path, calibration)
    if action.startswith("cancel"):
        # What has ended cannot be cancelled, and nothing here runs for long.
        expected = {"result": "refused", "code": "conflict", "subject": about}
    else:
        assert answer.status_code < 400, answer.text
        if path == "/pages/calibrate":
            about = answer.headers["location"].rpartition("=")[2]
        elif action in ("calibrate", "import", "refit"):
            about = answer.json()["id"]
        elif action == "evaluate":
            about = f"{calibration}/evaluations/{answer.json()['name']}"
        expected = {"result": "accepted", "code": None, "subject": about}
    assert wait_until(lambda: len(new()) == 2)
    row |= {"request_id": answer.headers["X-Request-Id"], "key_id": audited.key_ids["write"]}
    assert new()[0].items() >= (row | expected).items()


def test_reads_predictions_dry_runs_and_repeats_leave_no_entry(audited) -> None:
    client, headers = audited.everything, WAIT | {"Idempotency-Key": "audited"}
    parts = [("calibration", ("c.csv", logits_of())), ("config", (None, quick_config()))]
    made = client.post("/calibrate", files=parts, headers=headers).json()["id"]
    new = audited.since_now()
    repeated = client.post("/calibrate", files=parts, headers=headers)
    assert repeated.headers["Idempotency-Replayed"] == "true"
    client.post("/calibrate", files=parts, params={"dry_run": "true"}).raise_for_status()
    for path in (f"/calibrations/{made}", "/metrics", "/audit"):
        client.get(path).raise_for_status()
        audited.clients["predict"].get(path)
    for sender in (client, audited.clients["read"]):
        sender.post("/predict", json={"calibration": made, "logits": [[3, 0, 0]]})
    assert new() == []
    assert [e["action"] for e in audited.entries(subject=made)] == ["calibrate"]


def test_an_entry_of_a_refusal_has_its_code_and_repeats_leave_few(audited) -> None:
    """Also of different calibrations; another reason is another entry."""
    new = audited.since_now(result="refused")
    for path in ("nothing/promote", "%00%1b%ff/promote"):
        audited.everything.post(f"/calibrations/{path}")
    audited.everything.post("/calibrate", content=b"not a form")
    for n in range(40):
        assert audited.everything.delete(f"/calibrations/x{n}").status_code == 404
    audited.everything.post("/calibrations/x/cancel")
    assert wait_until(lambda: any(entry["action"] == "cancel" for entry in new()))
    entries = sorted((e["action"], e["code"], str(e["subject"])) for e in new())
    assert ("calibrate", "unsupported-format", "None") in entries
    promotions = [entry[1:] for entry in entries if entry[0] == "promote"]
    assert promotions == [("not-found", "??\ufffd"), ("not-found", "nothing")]
    assert 1 <= sum(action == "delete" for action, *_ in entries) <= MOST_REFUSALS


def test_unauthenticated_requests_leave_no_entry(audited) -> None:
    """Whoever is not known writes nothing, whatever number of requests is sent."""
    new = audited.since_now()
    for key in (None, "cal_nobody"):
        audited.service.client(key).post("/calibrate", content=b"")
    calibrated(audited.everything, calibration=logits_of())
    assert wait_until(new)
    # Entries are written in turn: those of nobody would be there before this one.
    assert [entry["action"] for entry in new()] == ["calibrate"]


def test_a_tenant_reads_its_own_rows_by_pages(audited) -> None:
    other = audited.service.client(audited.service.make_known("elsewhere").text)
    assert [entry["action"] for entry in other.get("/audit").json()["entries"]] == ["create-key"]
    whole = audited.entries()
    first = audited.everything.get("/audit", params={"limit": 5}).json()
    assert [*first["entries"], *audited.entries(cursor=first["next_cursor"])] == whole
    for query in ("cursor=x", "limit=0", "result=maybe", "since=2026-01-01T00:00:00"):
        answer = audited.everything.get(f"/audit?{query}")
        assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, query


def test_without_keys_an_entry_has_no_key_id(tmp_path) -> None:
    with keyed_service(tmp_path, first=False) as service:
        client = service.client()
        foreign = client.post(
            "/calibrations/nothing/promote", headers={"Origin": "http://a.example"}
        )
        assert foreign.json()["type"].endswith(":foreign-site")
        client.post("/calibrations/nothing/promote")
        assert wait_until(lambda: len(client.get("/audit").json()["entries"]) == 1)
        [entry] = client.get("/audit").json()["entries"]
        assert (entry["key_id"], entry["via"], entry["code"]) == (None, "api", "not-found")
