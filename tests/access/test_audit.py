"""Changes, and refused attempts at them, are in the audit log: who, what, and the result."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from keyed_service import KeyedService, keyed_service, logits_of
from runner_children import wait_until
from running_service import WAIT, calibrated, quick_config

from service.access.api_keys import MadeKey
from service.access.guard import MOST_REFUSALS
from service.access.route_table import ROUTES

pytestmark = pytest.mark.process

# They take a body to ask with, and change nothing; or write of themselves: whoever signs in is not
# known before.
UNNAMED = ("/predict", "/infer", "/index", "/try", "/sign-in", "/sign-out")
READS = ("GET", "HEAD", "OPTIONS")


@dataclass
class Audited:
    service: KeyedService
    key: MadeKey
    everything: httpx.Client

    def entries(self, **filters: Any) -> list[dict[str, Any]]:
        answer = self.everything.get("/audit", params={"limit": 1000} | filters)
        return answer.raise_for_status().json()["entries"]

    def since_now(self, **filters: Any) -> Callable[[], list[dict[str, Any]]]:
        """Return what returns the entries that came after this call."""
        before = {entry["id"] for entry in self.entries(**filters)}
        return lambda: [entry for entry in self.entries(**filters) if entry["id"] not in before]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    with keyed_service(tmp_path_factory.mktemp("audited")) as service:
        key = service.make_known("lab")
        yield Audited(service, key, service.client(key.text))


def test_every_route_that_changes_something_has_a_name() -> None:
    """What each leaves in the log is in test_every_route."""
    actions = {key for key, rule in ROUTES.items() if rule.action is not None}
    assert actions == {
        key for key in ROUTES if key[0] not in READS and not key[1].endswith(UNNAMED)
    }


def test_reads_predictions_dry_runs_and_repeats_leave_no_entry(audited) -> None:
    client, headers = audited.everything, WAIT | {"Idempotency-Key": "audited"}
    parts = [("calibration", ("c.csv", logits_of())), ("config", (None, quick_config()))]
    made = client.post("/calibrate", files=parts, headers=headers).json()["id"]
    reader = audited.service.client(audited.service.make_known("lab", "read").text)
    new = audited.since_now()
    for _ in range(2):
        client.post(f"/calibrations/{made}/promote").raise_for_status()
    assert [entry["action"] for entry in new()] == ["promote"]
    new = audited.since_now()
    repeated = client.post("/calibrate", files=parts, headers=headers)
    assert repeated.headers["Idempotency-Replayed"] == "true"
    client.post("/calibrate", files=parts, params={"dry_run": "true"}).raise_for_status()
    for path in (f"/calibrations/{made}", "/metrics", "/audit"):
        for sender in (client, reader):
            sender.get(path)
            sender.post("/predict", json={"calibration": made, "logits": [[3, 0, 0]]})
    assert new() == []
    entry = audited.entries(subject=made)[-1]
    assert (entry["action"], entry["key_id"]) == ("calibrate", audited.key.id)


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
    first = audited.everything.get("/audit", params={"limit": 2}).json()
    assert [*first["entries"], *audited.entries(cursor=first["next_cursor"])] == whole
    for query in ("cursor=x", "limit=0", "result=maybe", "since=2026-01-01T00:00:00"):
        answer = audited.everything.get(f"/audit?{query}")
        assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, query


def test_without_keys_an_entry_has_no_key_id(tmp_path) -> None:
    with keyed_service(tmp_path, first=False) as service:
        client = service.client()
        headers = {"Origin": "http://a.example"}
        foreign = client.post("/calibrations/nothing/promote", headers=headers)
        assert foreign.json()["type"].endswith(":foreign-site")
        client.post("/calibrations/nothing/promote")
        assert wait_until(lambda: len(client.get("/audit").json()["entries"]) == 1)
        [entry] = client.get("/audit").json()["entries"]
        assert (entry["key_id"], entry["via"], entry["code"]) == (None, "api", "not-found")
