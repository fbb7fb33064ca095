"""`Idempotency-Key` over HTTP: a repeated request makes nothing twice."""

import json

import httpx
from job_workspaces import logits_set
from running_service import calibrate, kept_files

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


def assert_is_refused(answer: httpx.Response) -> None:
    assert answer.status_code == REFUSED, answer.text
    assert [error["location"] for error in answer.json()["errors"]] == ["Idempotency-Key"]


def test_a_repeat_returns_the_first_calibration_and_another_file_name_is_refused(service) -> None:
    client, key = service.client, "8e03978e-40d5-43e8-bc93-6894a57f9324"
    assert post_set(client, key=key, bins=-1).status_code == REFUSED  # which stores no key
    first = post_set(client, key=key)
    files = kept_files(service.folder)
    for repeated in (key, f'"{key}"'):
        same(first, post_set(client, key=repeated))
    assert_is_refused(post_set(client, key=key, label="other.npz"))
    assert kept_files(service.folder) == files
    assert versions_of(client, "once") == 1


def test_refits_and_imports_are_made_once(client) -> None:
    config = json.dumps(QUICK | {"name": "source"})
    made = calibrate(client, calibration=LOGITS, config=config).json()
    headers = {"Idempotency-Key": "again", "Prefer": "wait=60"}

    def refit(bins: int) -> httpx.Response:
        # By its name, which the refit comes to mean.
        return client.post("/calibrations/source/refit", json={"bins": bins}, headers=headers)

    first = refit(7)
    same(first, refit(7))
    assert_is_refused(refit(8))

    document = client.get(f"/calibrations/{made['id']}/bins").json()

    def take(key: str, **asked: str) -> httpx.Response:
        sent = {"Idempotency-Key": key, "Content-Type": "application/json"}
        body = json.dumps(document)
        return client.post("/calibrations/import", content=body, params=asked, headers=sent)

    assert_is_refused(take("again"))
    same(take("import"), take("import"))
    assert_is_refused(take("import", name="elsewhere"))
    assert versions_of(client, "source") == 3


INVALID = ["", '""', '"open', '"a"b"', r'"a\b"', "k" * 256, f'"{"k" * 256}"']
INVALID += ["tab\tbed", "gr\xfc\xdf"]
VALID = ["k" * 255, f'"{"k" * 255}"', 'a key, "so" to say', r'"\"\\"']


def test_an_invalid_key_is_refused_and_a_valid_one_is_not(client) -> None:
    for keys in (*([key] for key in INVALID), ["a", "a"]):
        headers = [("Idempotency-Key", key.encode("latin-1")) for key in keys]
        assert_is_refused(client.post("/calibrations/none/refit", headers=headers))
    for key in VALID:
        headers = {"Idempotency-Key": key}
        answer = client.post("/calibrations/none/refit", json={"bins": 5}, headers=headers)
        assert answer.status_code == httpx.codes.NOT_FOUND
