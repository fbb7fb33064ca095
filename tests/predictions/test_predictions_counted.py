"""Every prediction request is counted once, under its route, however it ends."""

import asyncio
import socket

import httpx
import mixed_requests as mixed
import numpy as np
import pytest
from busy_service import HELD_ROWS, NAME, QUICK_ROWS, busy_service_on
from fastapi import FastAPI
from job_workspaces import logits_set
from mixed_requests import Sent
from runner_children import wait_until
from scraped import Scraped, scrape
from uploads import calibrated

from service.app import create_app
from service.settings import Settings

PREDICT, INFER = "/predict", "/v2/models/{model_name}/infer"
INFER_VERSION = "/v2/models/{model_name}/versions/{model_version}/infer"
MAX_BYTES = 100_000


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    settings = {"max_predict_bytes": MAX_BYTES, "predict_queue_rows": 6}
    with busy_service_on(tmp_path_factory.mktemp("counted"), **settings) as service:
        calibrated(service.client, '{"name": "outputs", "bins": 5}', calibration=logits_set())
        yield service


@pytest.fixture(scope="module")
def client(service) -> httpx.Client:
    return service.client


class Grown:
    """What has been added since."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._before = scrape(client)

    def __call__(self, name: str) -> dict[tuple[str, ...], float]:
        """Return what grew of a metric of requests, by route and status or reason."""
        after = scrape(self._client)
        return {
            (labels["route"], labels.get("status") or labels.get("reason", "")): more
            for labels in after.labels(name)
            if labels["route"] != "/metrics"
            if (more := after(name, **labels) - self._before(name, **labels))
        }


def check(grown: Grown, route: str, status: int, reason: str | None) -> None:
    assert grown("requests_total") == {(route, str(status)): 1}
    assert grown("request_seconds_count") == {(route, ""): 1}
    assert grown("failures_total") == ({} if reason is None else {(route, reason): 1})


def versioned(sent: Sent) -> Sent:
    return Sent(f"/v2/models/{NAME}/versions/1/infer", sent.content, sent.headers)


ROWS = np.float32(QUICK_ROWS)
LOGITS = np.float32([[0.1, 0.2, 0.3]])
ENDS = {
    "no such input": (mixed.as_json(NAME, "x", ROWS), PREDICT, 422, "invalid-input"),
    "answered": (mixed.as_json(NAME, "inputs", ROWS), PREDICT, 200, None),
    "arrays": (mixed.as_npy(NAME, "inputs", ROWS), PREDICT, 200, None),
    "outputs": (mixed.as_json("outputs", "logits", LOGITS), PREDICT, 200, None),
    "tensors": (mixed.as_tensors_in_bytes(NAME, "x", ROWS), INFER, 200, None),
    "gzip": (mixed.as_gzip(NAME, "x", ROWS), INFER, 200, None),
    "version": (versioned(mixed.as_tensors_in_json(NAME, "x", ROWS)), INFER_VERSION, 200, None),
    "tensors of outputs": (mixed.as_tensors_in_json("outputs", "logits", LOGITS), INFER, 200, None),
    "NaN": (mixed.with_nan(NAME, "inputs", ROWS), PREDICT, 422, "invalid-input"),
    "no such output": (
        mixed.asks_for_nothing_there_is(NAME, "x", ROWS),
        INFER,
        400,
        "invalid-input",
    ),
    "nobody": (mixed.as_json("nobody", "inputs", ROWS), PREDICT, 404, "not-found"),
    "no model": (mixed.as_tensors_in_json("nobody", "x", ROWS), INFER, 404, "not-found"),
    "no JSON": (Sent("/predict", b"{"), PREDICT, 400, "malformed-request"),
    "no gzip": (mixed.is_no_gzip(NAME, "x", ROWS), INFER, 400, "malformed-request"),
    "no type": (
        Sent("/predict", b"", {"Content-Type": "text/plain"}),
        PREDICT,
        415,
        "unsupported-format",
    ),
    "no form": (
        Sent("/predict", b"", {"Accept": "text/plain"}),
        PREDICT,
        406,
        "not-acceptable",
    ),
    "no time": (Sent("/predict", b"", {"Timeout": "soon"}), PREDICT, 422, "invalid-input"),
    "too long": (Sent("/predict", b" " * (MAX_BYTES + 1)), PREDICT, 413, "too-large"),
    "not a POST": (None, PREDICT, 405, "method-not-allowed"),
}


@pytest.mark.parametrize("end", ENDS)
def test_by_its_end(client, end) -> None:
    sent, route, status, reason = ENDS[end]
    grown = Grown(client)
    answer = client.get("/predict") if sent is None else sent.by(client)
    assert answer.status_code == status, answer.text
    check(grown, route, status, reason)


def test_one_whose_time_is_over(service) -> None:
    grown = Grown(service.client)
    with service.held():
        assert service.ask(HELD_ROWS, Timeout="0.1").status_code == httpx.codes.GATEWAY_TIMEOUT
    check(grown, PREDICT, 504, "deadline-exceeded")


def test_one_too_many(service) -> None:
    service.ask(QUICK_ROWS)
    with service.occupied():
        large = service.begin(np.tile(QUICK_ROWS, (5, 1)))
        service.wait_for(running=1, pending=1)
        grown = Grown(service.client)
        answer = service.ask(QUICK_ROWS, path="infer")
        assert answer.status_code == httpx.codes.TOO_MANY_REQUESTS
        check(grown, INFER, 429, "too-many-requests")
    assert large.result().status_code == httpx.codes.OK


def test_one_whose_client_leaves(service) -> None:
    with service.occupied():
        grown = Grown(service.client)
        with pytest.raises(httpx.ReadTimeout):
            service.client.post(
                "/predict",
                json={"calibration": NAME, "inputs": QUICK_ROWS.tolist()},
                timeout=httpx.Timeout(10, read=0.3),
            )
        assert wait_until(lambda: grown("requests_total"))
        check(grown, PREDICT, 499, "client-left")


def test_one_whose_client_leaves_before_its_end(client) -> None:
    grown = Grown(client)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(client._transport._pool._uds)
        sock.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
    assert wait_until(lambda: grown("requests_total"))
    check(grown, PREDICT, 499, "client-left")


def test_only_rows_that_were_answered_are_counted(service) -> None:
    client = service.client
    before = scrape(client)
    good = [mixed.as_tensors_in_bytes(NAME, "x", ROWS) for _ in range(1)]
    bad = [mixed.asks_for_nothing_there_is(NAME, "x", ROWS) for _ in range(1)]
    with service.occupied():
        asked = [service.send(sent) for pair in zip(good, bad, strict=True) for sent in pair]
    statuses = [found.result().status_code for found in asked]
    assert set(statuses) <= {200, 400, 429}
    after = scrape(client)

    def grown(name: str, **labels: str) -> float:
        return after(name, **labels) - before(name, **labels)

    n_rows = statuses.count(200) * len(ROWS) + len(HELD_ROWS)
    assert grown("predict_rows_total") == n_rows
    of = {"calibration": NAME, "version": "1"}
    assert grown("calibration_rows_total", **of) == n_rows
    for event in ("top1", "top5"):
        bins = [
            grown("answers_total", **labels)
            for labels in after.labels("answers_total")
            if labels["event"] == event and labels["calibration"] == NAME
        ]
        assert sum(bins) == n_rows


def test_those_that_come_while_others_are_under_way_on_their_connection(service) -> None:
    client, body = service.client, mixed.as_json(NAME, "inputs", ROWS).content
    request = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    grown = Grown(client)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        sock.connect(client._transport._pool._uds)
        sock.sendall((request + body) * 3)
        assert wait_until(lambda: grown("requests_total") == {(PREDICT, "200"): 3})
    assert grown("request_seconds_count") == {(PREDICT, ""): 3}


def test_those_that_come_by_another_server(tmp_path) -> None:
    """As ordinary routes of an ASGI app, here below a path of another one."""
    app = create_app(Settings(data_dir=tmp_path, device="cpu", _env_file=None))
    outer = FastAPI()
    outer.mount("/sub", app)

    async def ask() -> tuple[list[httpx.Response], Scraped]:
        transport = httpx.ASGITransport(outer)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            body = {"calibration": "nobody", "logits": [[0.0, 1.0]]}
            packed = {"Content-Encoding": "gzip"}
            answers = [
                await client.post("/sub/predict", json=body),
                await client.post("/sub/v2/models/nobody/infer", json={}),
                await client.post("/sub/v2/models/nobody/infer", content=b"x", headers=packed),
                await client.post("/sub/predict", content=b"x", headers=packed),
                await client.get("/sub/predict"),
            ]
            return answers, Scraped(app.state.metrics.render().decode())

    answers, found = asyncio.run(ask())
    assert [answer.status_code for answer in answers] == [404, 404, 400, 415, 405]
    assert answers[0].json()["type"] == "urn:howsure:problem:not-found"
    assert answers[1].json().keys() == answers[2].json().keys() == {"error"}
    assert found("requests_total", method="POST", route=PREDICT, status="404") == 1
    for status in ("404", "400"):
        assert found("requests_total", method="POST", route=INFER, status=status) == 1
