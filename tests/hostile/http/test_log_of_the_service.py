"""The log of a service that strangers call: its lines are its own, and it keeps secrets."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hostile_case import CRLF, raw, send_pieces, sized
from hostile_service import TwoTenants, two_tenants
from runner_children import wait_until

from service.startup import HANDLER, configure_logging

pytestmark = pytest.mark.process
FORGED = '{"event": "request", "key": "forged"}'
Logged = tuple[TwoTenants, Callable[[], str]]


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logged]:
    """A service in this process, and what it has written to its log."""
    with two_tenants(tmp_path_factory.mktemp("logged")) as tenants:
        configure_logging("json")  # the harness has set another level
        (handler,) = [one for one in logging.getLogger().handlers if one.name == HANDLER]
        written = io.StringIO()
        handler.setStream(written)
        yield tenants, written.getvalue
    configure_logging("json", level=logging.WARNING)


def test_the_log_holds_no_secrets_and_no_forged_lines(logged: Logged) -> None:
    tenants, log = logged
    attacker, before = tenants.attacker, len(log())
    secret = attacker.key.rsplit("_", 2)[-2]
    pepper = (tenants.data / "key-pepper").read_text().strip()
    client = attacker.client
    name = f"\n{FORGED}\r\n\x1b[2J"
    wrong = attacker.key[:-1] + ("a" if attacker.key[-1] != "a" else "b")
    responses = [
        client.get(f"/calibrations/{attacker.key}"),
        client.get("/report", params={"calibration": f"{attacker.key}{name}"}),
        client.get("/calibrations", headers={"Authorization": f"Bearer {wrong}"}),
        client.get("/calibrations", headers={"Authorization": f"Basic {attacker.key}"}),
        client.get("/nothing", params={"key": attacker.key}, headers={"Cookie": attacker.key}),
        client.post("/predict", json={"calibration": attacker.key + name, "logits": [[1, 2, 3]]}),
        client.post("/predict", content=attacker.key + name),
        client.post("/v2/models/none/infer", content=b"{}"),
        attacker.calibrate(b"label\n" + name.encode(), config=json.dumps({"name": name})),
        client.get("/healthz", headers={"X-Request-Id": FORGED}),
        send_pieces(attacker, [raw(attacker, b"X: " + attacker.key.encode() + b"\x00", sized(0))]),
        send_pieces(
            attacker, [raw(attacker, target=b"/%0a%1b" + attacker.key.encode(), method=b"GET")]
        ),
        send_pieces(
            attacker, [CRLF.join([b"GET /calibrations/a%0ab HTTP/1.1", b"Host: h", b"", b""])]
        ),
    ]
    assert {response.status_code for response in responses} <= {200, 400, 401, 404, 415, 422}

    def events() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in log()[before:].splitlines()]
        return [line for line in lines if line["event"] == "request"]

    # A line is written once its response is sent; two of these never became requests.
    assert wait_until(lambda: len(events()) >= len(responses) - 2)
    for line in events():
        assert {"method", "route", "status", "seconds", "request_id", "timestamp"} <= line.keys()
        assert line.get("key") in (None, attacker.key.split("_")[1])
        assert line["route"] == "other" or line["route"] in client.get("/openapi.json").text
    assert {"key", "tenant"} <= events()[0].keys()
    told = {response.headers["x-request-id"] for response in responses}
    assert {line["request_id"] for line in events()} <= told
    for kept in (secret, pepper, "Bearer", "forged", "\x1b"):
        assert kept not in log()
