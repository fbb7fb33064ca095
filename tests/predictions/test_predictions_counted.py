"""Every prediction request is counted once, under its route, however it ends."""

import asyncio
import socket
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
import request_formats as mixed
from busy_service import NAME, QUICK_ROWS, sentence_of
from fastapi import FastAPI
from job_workspaces import logits_set
from request_formats import Sent
from runner_children import wait_until
from running_service import Growth, Scraped, calibrated, quick_config

from service.app import create_app
from service.predictions.oip_statistics import Statistics
from service.settings import Settings
from service.storage.calibration_queries import CalibrationRef

PREDICT, INFER = "/predict", "/v2/models/{model_name}/infer"
INFER_VERSION = "/v2/models/{model_name}/versions/{model_version}/infer"


@pytest.fixture(scope="module")
def client(busy) -> httpx.Client:
    calibrated(busy.client, quick_config(name="outputs"), calibration=logits_set())
    return busy.client


def requests_of(grown: Growth, name: str = "requests_total") -> dict[tuple[str, str], float]:
    """Return what grew of a metric of requests, by route and status or reason."""
    return {
        (labels["route"], labels.get("status") or labels.get("reason", "")): more
        for labels, more in grown.of_each(name)
        if labels["route"] != "/metrics"
    }


def check(grown: Growth, route: str, status: int, reason: str | None) -> None:
    assert requests_of(grown) == {(route, str(status)): 1}
    assert requests_of(grown, "request_seconds_count") == {(route, ""): 1}
    failures = {} if reason is None else {(route, reason): 1}
    assert requests_of(grown, "failures_total") == failures


def versioned(sent: Sent) -> Sent:
    return Sent(f"/v2/models/{NAME}/versions/1/infer", sent.content, sent.headers)


ROWS = np.float32(QUICK_ROWS)
LOGITS = np.float32([[0.1, 0.2, 0.3]])
ENDS = {
    "answered": (mixed.as_json(NAME, "inputs", ROWS), PREDICT, 200, None),
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
    "no JSON": (Sent("/predict", b"{"), PREDICT, 400, "malformed-request"),
    "no gzip": (mixed.is_no_gzip(NAME, "x", ROWS), INFER, 400, "malformed-request"),
    "no type": (
        Sent("/predict", b"", {"Content-Type": "text/plain"}),
        PREDICT,
        415,
        "unsupported-format",
    ),
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


def test_a_request_past_its_deadline_is_counted(busy) -> None:
    grown = Growth(busy.client)
    with busy.held():
        assert busy.ask(Timeout="0.1").status_code == httpx.codes.GATEWAY_TIMEOUT
    check(grown, PREDICT, 504, "deadline-exceeded")


def test_a_request_beyond_the_queue_is_counted(busy) -> None:
    with busy.occupied():
        large = busy.begin(np.tile(QUICK_ROWS, (5, 1)))
        busy.wait_for(running=1, pending=1)
        grown = Growth(busy.client)
        answer = busy.ask(path="infer")
        assert answer.status_code == httpx.codes.TOO_MANY_REQUESTS
        assert sentence_of(answer).startswith("The prediction queue is full: ")
        check(grown, INFER, 429, "too-many-requests")
    assert large.result().status_code == httpx.codes.OK


def test_a_request_whose_client_leaves_is_counted(busy) -> None:
    with busy.occupied():
        grown = Growth(busy.client)
        with pytest.raises(httpx.ReadTimeout):
            busy.client.post(
                "/predict",
                json={"calibration": NAME, "inputs": QUICK_ROWS.tolist()},
                timeout=httpx.Timeout(10, read=0.3),
            )
        assert wait_until(lambda: requests_of(grown))
        check(grown, PREDICT, 499, "client-left")


def test_a_request_whose_client_leaves_before_its_end_is_counted(client) -> None:
    grown = Growth(client)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(client._transport._pool._uds)
        sock.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
    assert wait_until(lambda: requests_of(grown))
    check(grown, PREDICT, 499, "client-left")


def test_only_rows_that_were_answered_are_counted(busy) -> None:
    grown = Growth(busy.client)
    with busy.occupied():
        good = busy.send(mixed.as_tensors_in_bytes(NAME, "x", ROWS))
        bad = busy.send(mixed.asks_for_nothing_there_is(NAME, "x", ROWS))
    assert (good.result().status_code, bad.result().status_code) == (200, 400)
    n_rows = 2 * len(ROWS)
    assert grown("predict_rows_total") == n_rows
    assert grown("calibration_rows_total", calibration=NAME, version="1") == n_rows
    for event in ("top1", "top5"):
        bins = [more for of, more in grown.of_each("answers_total") if of["event"] == event]
        assert sum(bins) == n_rows


def test_pipelined_requests_are_counted(client) -> None:
    body = mixed.as_json(NAME, "inputs", ROWS).content
    request = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    grown = Growth(client)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        sock.connect(client._transport._pool._uds)
        sock.sendall((request + body) * 3)
        assert wait_until(lambda: requests_of(grown) == {(PREDICT, "200"): 3})
    assert requests_of(grown, "request_seconds_count") == {(PREDICT, ""): 3}


def test_requests_through_another_asgi_app_are_counted(tmp_path) -> None:
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


def ref(version: int) -> CalibrationRef:
    return CalibrationRef(uuid.uuid5(uuid.NAMESPACE_OID, str(version)), "digits", version)


def test_nothing_is_lost_between_threads() -> None:
    statistics = Statistics()

    def count(number: int) -> None:
        statistics.succeeded(ref(number % 2), requests=1, rows=3, waited=2e-6, ran=3e-6)
        statistics.failed(ref(1), seconds=5e-6)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(2000)))

    found = statistics.of(ref(1))
    assert (found.inference_count, found.execution_count) == (3000, 1000)
    assert found.inference_stats["success"] == {"count": 1000, "ns": 5_000_000}
    assert found.inference_stats["queue"] == {"count": 1000, "ns": 2_000_000}
    assert found.inference_stats["compute_infer"] == {"count": 1000, "ns": 3_000_000}
    assert found.inference_stats["fail"] == {"count": 2000, "ns": 10_000_000}
    assert found.last_inference > 0


def test_the_least_recently_used_statistics_are_dropped() -> None:
    statistics = Statistics(size=2)
    for version in (1, 2, 1, 3):
        statistics.succeeded(ref(version), requests=1, rows=1, waited=0.0, ran=0.0)

    counts = [statistics.of(ref(version)).inference_count for version in (1, 2, 3, 4)]
    assert counts == [2, 0, 1, 0]
    assert statistics.of(ref(4)).last_inference == 0
