"""Every prediction request is counted once, under its route, however it ends."""

import asyncio
import socket

import httpx
import numpy as np
import pytest
import request_formats as mixed
from busy_service import NAME, QUICK_ROWS
from fastapi import FastAPI
from job_workspaces import logits_set
from request_formats import Sent
from runner_children import wait_until
from running_service import Growth, Scraped, calibrated

from service.app import create_app
from service.settings import Settings

PREDICT, INFER = "/predict", "/v2/models/{model_name}/infer"
INFER_VERSION = "/v2/models/{model_name}/versions/{model_version}/infer"
AT_ONCE, QUEUE_ROWS = 20, 10


@pytest.fixture(scope="module")
def client(busy) -> httpx.Client:
    calibrated(busy.client, {"name": "outputs"}, calibration=logits_set())
    return busy.client


def requests_of(grown: Growth, name: str = "requests_total") -> dict[tuple[str, str], float]:
    """Return what grew of a metric of requests, by route and status or reason."""
    return {
        (labels["route"], labels.get("status") or labels.get("reason", "")): more
        for labels, more in grown.of_each(name)
        if labels["route"] != "/metrics"
    }


def check(grown: Growth, route: str, status: int, reason: str | None, n_requests: int = 1) -> None:
    assert requests_of(grown) == {(route, str(status)): n_requests}
    assert requests_of(grown, "request_seconds_count") == {(route, ""): n_requests}
    failures = {} if reason is None else {(route, reason): 1}
    assert requests_of(grown, "failures_total") == failures


ROWS = np.float32(QUICK_ROWS)
LOGITS = np.float32([[0.1, 0.2, 0.3]])
IN_JSON = mixed.as_tensors_in_json(NAME, "x", ROWS)
NO_OUTPUT = mixed.asks_for_nothing_there_is(NAME, "x", ROWS)
OF_VERSION = Sent(f"/v2/models/{NAME}/versions/1/infer", IN_JSON.content, IN_JSON.headers)
NO_TYPE = Sent("/predict", b"", {"Content-Type": "text/plain"})
ENDS = {
    "answered": (mixed.as_json(NAME, "inputs", ROWS), PREDICT, 200, None),
    "gzip": (mixed.as_gzip(NAME, "x", ROWS), INFER, 200, None),
    "version": (OF_VERSION, INFER_VERSION, 200, None),
    "tensors of outputs": (mixed.as_tensors_in_json("outputs", "logits", LOGITS), INFER, 200, None),
    "NaN": (mixed.with_nan(NAME, "inputs", ROWS), PREDICT, 422, "invalid-input"),
    "no such output": (NO_OUTPUT, INFER, 400, "invalid-input"),
    "nobody": (mixed.as_json("nobody", "inputs", ROWS), PREDICT, 404, "not-found"),
    "no JSON": (Sent("/predict", b"{"), PREDICT, 400, "malformed-request"),
    "no gzip": (mixed.is_no_gzip(NAME, "x", ROWS), INFER, 400, "malformed-request"),
    "no type": (NO_TYPE, PREDICT, 415, "unsupported-format"),
    "too long": (Sent("/predict", bytes(33 * 1024**2)), PREDICT, 413, "too-large"),
    "not a POST": (None, PREDICT, 405, "method-not-allowed"),
}


@pytest.mark.parametrize("end", ENDS)
def test_each_outcome_is_counted_once(client, end) -> None:
    sent, route, status, reason = ENDS[end]
    grown = Growth(client)
    answer = client.get("/predict") if sent is None else sent.by(client)
    assert answer.status_code == status, answer.text
    check(grown, route, status, reason)


def test_requests_that_wait_are_counted(busy) -> None:
    """Those that end at their deadline, and those that lose their client."""
    grown = Growth(busy.client)
    with busy.held():
        assert busy.ask(Timeout="0.1").status_code == httpx.codes.GATEWAY_TIMEOUT
    check(grown, PREDICT, 504, "deadline-exceeded")
    busy.wait_for_answer()
    with busy.occupied():
        grown = Growth(busy.client)
        body = {"calibration": NAME, "inputs": QUICK_ROWS.tolist()}
        with pytest.raises(httpx.ReadTimeout):
            busy.client.post("/predict", json=body, timeout=httpx.Timeout(10, read=0.3))
        assert wait_until(lambda: requests_of(grown))
        check(grown, PREDICT, 499, "client-left")


def test_requests_beyond_the_queue_are_refused_and_the_rest_answered(busy) -> None:
    """Other routes are answered meanwhile."""
    expected = busy.ask().content
    with busy.occupied():
        answers = [busy.begin() for _ in range(AT_ONCE)]
        n_refused = AT_ONCE - QUEUE_ROWS // len(QUICK_ROWS)
        assert wait_until(lambda: sum(answer.done() for answer in answers) == n_refused)
        refused = [answer.result() for answer in answers if answer.done()]
        waiting = [answer for answer in answers if not answer.done()]
        for path in ("/healthz", "/readyz", "/calibrations", f"/report?calibration={NAME}"):
            assert busy.client.get(path).status_code == httpx.codes.OK
        grown = Growth(busy.client)
        assert busy.ask(path="infer").status_code == httpx.codes.TOO_MANY_REQUESTS
        check(grown, INFER, 429, "too-many-requests")
    for answer in refused:
        assert answer.status_code == httpx.codes.TOO_MANY_REQUESTS
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert {answer.result().content for answer in waiting} == {expected}
    busy.wait_for(running=0, pending=0)
    assert busy.ask().content == expected


BODY = mixed.as_json(NAME, "inputs", ROWS).content
FORM = b"Content-Type: multipart/form-data; boundary=b\r\n"
BARE = [(PREDICT, b"", 1, 499, "client-left"), (PREDICT, b"", 3, 200, None)]
BARE += [("/calibrate", FORM, 1, 499, "client-left")]


@pytest.mark.parametrize(("path", "form", "n_requests", "status", "reason"), BARE)
def test_requests_of_a_bare_connection_are_counted(
    client, path, form, n_requests, status, reason
) -> None:
    """One whose client leaves before its end, and three that come at once."""
    line = b"POST %b HTTP/1.1\r\nHost: localhost\r\n" % path.encode()
    head = line + form + b"Content-Length: %d\r\n\r\n" % len(BODY)
    content = (head + BODY) * n_requests if reason is None else head + BODY[:-1]
    grown = Growth(client)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        sock.connect(client._transport._pool._uds)
        sock.sendall(content)
        if reason is not None:
            sock.close()
        assert wait_until(lambda: requests_of(grown) == {(path, str(status)): n_requests})
    check(grown, path, status, reason, n_requests)


@pytest.mark.process
def test_requests_through_another_asgi_app_are_counted(tmp_path) -> None:
    """As ordinary routes of an ASGI app, here below a path of another one."""
    app = create_app(Settings(data_dir=tmp_path, device="cpu", _env_file=None))
    outer = FastAPI()
    outer.mount("/sub", app)
    body = {"json": {"calibration": "nobody", "logits": [[0.0, 1.0]]}}
    packed = {"content": b"x", "headers": {"Content-Encoding": "gzip"}}
    infer = "v2/models/nobody/infer"
    requests = [("predict", body), (infer, {"json": {}}), (infer, packed), ("predict", packed)]

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(outer)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            answers = [await client.post(f"/sub/{path}", **sent) for path, sent in requests]
            return [*answers, await client.get("/sub/predict")]

    answers = asyncio.run(ask())
    assert [answer.status_code for answer in answers] == [404, 404, 400, 415, 405]
    assert answers[0].json()["type"] == "urn:howsure:problem:not-found"
    assert answers[1].json().keys() == answers[2].json().keys() == {"error"}
    scraped = Scraped(app.state.metrics.render().decode())
    for route, status in ((PREDICT, "404"), (INFER, "404"), (INFER, "400")):
        assert scraped("requests_total", method="POST", route=route, status=status) == 1
