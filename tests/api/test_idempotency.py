"""`Idempotency-Key` over HTTP: a request that is sent again makes nothing twice."""

import json

import httpx
import pytest
from job_workspaces import logits_set
from running_service import calibrate, kept_files
from storage_threads import at_once

CREATED, REFUSED = httpx.codes.CREATED, httpx.codes.UNPROCESSABLE_ENTITY
REPLAYED = "idempotency-replayed"
LOGITS = logits_set(40)
QUICK = {"measures": ["margin"], "top_k": [1], "folds": 2, "bins": 2}


def post_set(client, *, key: str, label: str = "set.npz", **config: object) -> httpx.Response:
    options = QUICK | {"name": "once"} | config
    parts = [("calibration", (label, LOGITS)), ("config", (None, json.dumps(options)))]
    headers = {"Idempotency-Key": key, "Prefer": "wait=60"}
    return client.post("/calibrate", files=parts, headers=headers)


def versions_of(client, name: str) -> int:
    return len(client.get("/calibrations", params={"name": name}).json()["calibrations"])


def same(first: httpx.Response, again: httpx.Response) -> None:
    """Both are the answer of one calibration, and the second says so."""
    assert (first.status_code, again.status_code) == (CREATED, CREATED), again.text
    assert REPLAYED not in first.headers
    assert again.headers[REPLAYED] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert again.json() == first.json()


def test_a_repeated_calibration_is_the_first_one(service) -> None:
    client = service.client
    first = post_set(client, key='"8e03978e-40d5-43e8-bc93-6894a57f9324"')
    files = kept_files(service.folder)
    same(first, post_set(client, key='"8e03978e-40d5-43e8-bc93-6894a57f9324"'))
    same(first, post_set(client, key="8e03978e-40d5-43e8-bc93-6894a57f9324"))
    assert kept_files(service.folder) == files
    assert versions_of(client, "once") == 1


@pytest.mark.parametrize("other", [{"bins": 5}, {"label": "other.npz"}])
def test_the_same_key_with_another_request_is_refused(service, other: dict) -> None:
    client = service.client
    post_set(client, key="reused")
    files, known = kept_files(service.folder), versions_of(client, "once")
    answer = post_set(client, key="reused", **other)
    assert answer.status_code == REFUSED
    assert [found["location"] for found in answer.json()["errors"]] == ["Idempotency-Key"]
    assert (kept_files(service.folder), versions_of(client, "once")) == (files, known)


def test_a_request_that_was_refused_keeps_no_key(client) -> None:
    assert post_set(client, key="corrected", bins=-1).status_code == REFUSED
    assert post_set(client, key="corrected").status_code == CREATED


def test_repeats_at_once_make_one(client) -> None:
    answers = at_once([lambda: post_set(client, key="parallel", name="parallel")] * 4)
    assert [answer.status_code for answer in answers] == [CREATED] * 4
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum(REPLAYED in answer.headers for answer in answers) == 3
    assert versions_of(client, "parallel") == 1


def test_refits_and_imports_are_made_once_too(client) -> None:
    made = calibrate(
        client, calibration=LOGITS, config=json.dumps(QUICK | {"name": "source"})
    ).json()
    headers = {"Idempotency-Key": "again", "Prefer": "wait=60"}

    def refit(bins: int) -> httpx.Response:
        # By its name, which the refit comes to mean.
        return client.post("/calibrations/source/refit", json={"bins": bins}, headers=headers)

    first = refit(7)
    same(first, refit(7))
    assert refit(8).status_code == REFUSED

    document = client.get(f"/calibrations/{made['id']}/bins").json()

    def take(key: str, **asked: str) -> httpx.Response:
        sent = {"Idempotency-Key": key, "Content-Type": "application/json"}
        body = json.dumps(document)
        return client.post("/calibrations/import", content=body, params=asked, headers=sent)

    assert take("again").status_code == REFUSED
    same(take("import"), take("import"))
    assert take("import", name="elsewhere").status_code == REFUSED
    assert versions_of(client, "source") == 3


def test_a_key_is_free_when_its_calibration_is_deleted(client) -> None:
    first = post_set(client, key="deleted")
    assert client.delete(first.headers["location"]).status_code == httpx.codes.NO_CONTENT
    again = post_set(client, key="deleted")
    assert again.status_code == CREATED
    assert REPLAYED not in again.headers
    assert again.json()["id"] != first.json()["id"]


@pytest.mark.parametrize(
    "key",
    [
        "",
        '""',
        '"',
        '"open',
        '"a"b"',
        '"a\\b"',
        "k" * 256,
        f'"{"k" * 256}"',
        "tab\tbed",
        "gr\xfc\xdf",
    ],
)
def test_what_is_no_key_is_refused(client, key: str) -> None:
    answer = client.post(
        "/calibrations/none/refit", headers={"Idempotency-Key": key.encode("latin-1")}
    )
    assert answer.status_code == REFUSED, answer.text
    problem = answer.json()
    assert [found["location"] for found in problem["errors"]] == ["Idempotency-Key"]
    assert "1 to 255 printable ASCII characters" in problem["detail"]


def test_one_request_has_one_key(client) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "a")]
    answer = client.post("/calibrations/none/refit", headers=headers)
    assert answer.status_code == REFUSED


@pytest.mark.parametrize("key", ["k" * 255, f'"{"k" * 255}"', 'a key, "so" to say', r'"\"\\"'])
def test_what_is_a_key_is_taken(client, key: str) -> None:
    answer = client.post(
        "/calibrations/none/refit", json={"bins": 5}, headers={"Idempotency-Key": key}
    )
    assert answer.status_code == httpx.codes.NOT_FOUND
