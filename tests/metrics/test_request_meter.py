"""Every request is counted, whatever its result."""

import asyncio
from contextlib import suppress

import pytest
from running_service import Scraped

from service.http.request_record import RequestLog, RequestRecord
from service.metrics.metrics import Metrics


def met(app, method="GET", **scope) -> Scraped:
    """Return what is counted of one request to an ASGI app."""
    metrics = Metrics()

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        pass

    async def ask():
        meter = RequestRecord(app, metrics=metrics, request_log=RequestLog("none"))
        await meter({"type": "http", "method": method, "headers": [], **scope}, receive, send)

    with suppress(ZeroDivisionError):
        asyncio.run(ask())
    return Scraped(metrics.render().decode())


def answering(status, *, failure=None):
    async def app(scope, receive, send):
        if failure is not None:
            scope["state"]["failure"] = failure
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return app


async def silent(scope, receive, send):
    pass


async def failing(scope, receive, send):
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("app", "status", "reason"),
    [
        (answering(200), "200", None),
        (answering(302), "302", None),
        (answering(404), "404", "not-found"),
        (answering(422, failure="invalid-dataset"), "422", "invalid-dataset"),
        (answering(200, failure="invalid-dataset"), "200", None),
        (silent, "499", "client-left"),
        (failing, "500", "internal-error"),
    ],
)
def test_each_request_is_counted_once_by_its_result(app, status, reason) -> None:
    found = met(app)
    of = {"method": "GET", "route": "other"}
    assert found.labels("requests_total") == [{**of, "status": status}]
    assert found("requests_total", **of, status=status) == 1
    assert found("request_seconds_count", **of) == 1
    assert found.labels("failures_total") == ([] if reason is None else [{**of, "reason": reason}])


def test_an_unknown_method_makes_no_label_and_other_scopes_are_not_counted() -> None:
    found = met(answering(405), method="BREW")
    assert [labels["method"] for labels in found.labels("requests_total")] == ["other"]
    assert met(silent, type="lifespan").labels("requests_total") == []
