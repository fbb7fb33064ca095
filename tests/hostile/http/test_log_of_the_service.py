"""The log of a service that strangers call: its lines are its own, and it keeps secrets."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hostile_case import CRLF, raw, said, sized
from hostile_service import HostileService, hostile_service
from runner_children import wait_until


@pytest.fixture(scope="module")
def hostile_process(tmp_path_factory) -> Iterator[HostileService]:
    """A service of its own: its log holds what is sent here, and nothing that other tests write."""
    with hostile_service(tmp_path_factory.mktemp("logged")) as service:
        yield service


FORGED = '{"event": "request", "key": "forged"}'


def test_the_log_holds_no_secrets_and_no_forged_lines(hostile_process) -> None:
    """Also where keys are sent in places that they do not belong in."""
    service = hostile_process
    attacker = service.attacker
    secret = attacker.key.rsplit("_", 2)[-2]
    pepper = (service.data / "key-pepper").read_text().strip()
    client = attacker.client
    logged = len(service.log())
    name = f"\n{FORGED}\r\n\x1b[2J"
    wrong = attacker.key[:-1] + ("a" if attacker.key[-1] != "a" else "b")
    answers = [
        client.get(f"/calibrations/{attacker.key}"),
        client.get("/report", params={"calibration": f"{attacker.key}{name}"}),
        client.get("/calibrations", headers={"Authorization": f"Bearer {wrong}"}),
        client.get("/calibrations", headers={"Authorization": f"Basic {attacker.key}"}),
        client.get("/nothing", params={"key": attacker.key}, headers={"Cookie": attacker.key}),
        client.post("/predict", json={"calibration": attacker.key + name, "logits": [[1, 2, 3]]}),
        client.post("/predict", content=attacker.key + name),
        attacker.calibrate(b"label\n" + name.encode(), config=json.dumps({"name": name})),
        client.get("/healthz", headers={"X-Request-Id": FORGED}),
        said(attacker, [raw(attacker, b"X: " + attacker.key.encode() + b"\x00", sized(0))]),
        said(attacker, [raw(attacker, target=b"/%0a%1b" + attacker.key.encode(), method=b"GET")]),
        said(attacker, [CRLF.join([b"GET /calibrations/a%0ab HTTP/1.1", b"Host: h", b"", b""])]),
    ]
    assert {answer.status_code for answer in answers} <= {200, 400, 401, 404, 415, 422}

    def events() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in service.log()[logged:].splitlines()]
        return [line for line in lines if line["event"] == "request"]

    # A line is written once its answer is sent; two of these never became requests.
    assert wait_until(lambda: len(events()) >= len(answers) - 2)
    for line in events():
        assert {"method", "route", "status", "seconds", "request_id", "timestamp"} <= line.keys()
        assert line.get("key") in (None, attacker.key.split("_")[1])
        assert line["route"] == "other" or line["route"] in client.get("/openapi.json").text
    assert {"key", "tenant"} <= events()[0].keys()
    for kept in (secret, pepper, "Bearer", "forged", "\x1b"):
        assert kept not in service.log()


def test_an_answer_and_its_log_line_have_the_same_id(hostile_process) -> None:
    client = hostile_process.attacker.client
    for path in ("/predict", "/v2/models/none/infer", "/calibrations/none/promote"):
        answer = client.post(path, content=b"{}")
        given = answer.headers["x-request-id"]
        if not path.startswith("/v2"):
            assert answer.json()["request_id"] == given
        line = f'"request_id": "{given}"'
        # It is written once the answer is sent.
        assert wait_until(lambda line=line: line in hostile_process.log())
