"""Progress as server-sent events over HTTP; the test acts as the worker."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from forked_children import SERVER
from runner_children import wait_until
from running_service import service_on
from stored_rows import (
    claimed,
    evaluation_queue_of,
    finished_calibration,
    queue_calibration,
    queue_evaluation,
    queue_of,
)

from service.cli.connection import running
from service.cli.server import bind
from service.settings import Settings
from service.storage.database import open_database

PLACES = 45  # of the one tenant, who leaves as many free
OK = httpx.codes.OK


def read_events(response: httpx.Response) -> Iterator[tuple[str, Any]]:
    """Yield the name and the content of each event."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        fields[name] = value
        if not line and "data" in fields:
            yield fields.pop("event"), json.loads(fields.pop("data"))


@contextmanager
def stream_of(client: httpx.Client, address: str) -> Iterator[tuple[httpx.Response, Iterator[Any]]]:
    """Open the stream of a job, by its address; yield the response and its events."""
    with client.stream("GET", f"{address}/events", timeout=30) as response:
        if response.status_code != OK:
            response.read()
        yield response, read_events(response)


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    """A client of a service that runs no jobs, and its database."""
    folder = tmp_path_factory.mktemp("idle")
    with service_on(folder, workers=0, max_connections=4 * PLACES) as client:
        database = open_database(f"sqlite:///{folder / 'howsure.sqlite3'}")
        yield client, database
        database.dispose()


def address_of(row) -> str:
    return f"/calibrations/{row.id}"


def test_a_calibration_is_followed_to_its_end(idle) -> None:
    client, database = idle
    row, queue = queue_calibration(database, "followed"), queue_of(database)
    with stream_of(client, "/calibrations/followed@1") as (response, events):
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-store"
        assert next(events) == ("progress", {"status": "queued", "progress": None})
        job = claimed(queue)
        assert next(events) == ("progress", {"status": "running", "progress": None})
        queue.report_progress(job, "calibration", 20, 100, 40.0)
        progress = {"stage": "calibration", "done": 20, "total": 100}
        progress |= {"rows_per_second": 40.0, "eta_seconds": 2.0}
        assert next(events) == ("progress", {"status": "running", "progress": progress})
        assert client.get(address_of(row)).json()["progress"] == progress
        queue.publish(job, rows=[], artifacts=[], accuracy={"1": 0.9})
        name, whole = next(events)
        assert name == "end"
        assert whole == client.get(address_of(row)).json()
        assert (whole["status"], whole["accuracy"]) == ("succeeded", {"1": 0.9})
        assert list(events) == []


def test_a_finished_job_ends_the_stream_at_once(idle) -> None:
    client, database = idle
    for status in ("succeeded", "failed", "cancelled"):
        row = finished_calibration(database, status=status)
        with stream_of(client, address_of(row)) as (_, events):
            assert list(events) == [("end", client.get(address_of(row)).json())]


def test_an_evaluation_is_followed_by_its_name(idle) -> None:
    client, database = idle
    calibration = finished_calibration(database)
    queue_evaluation(database, calibration, "by night/in rain")
    queue = evaluation_queue_of(database)
    address = f"{address_of(calibration)}/evaluations/by%20night/in%20rain"
    with stream_of(client, address) as (_, events):
        assert next(events) == ("progress", {"status": "queued", "progress": None})
        job = claimed(queue)
        assert next(events)[1]["status"] == "running"
        assert queue.fail(job, {"title": "Test"})
        name, whole = next(events)
        assert (name, whole["error"]) == ("end", {"title": "Test"})
        assert whole == client.get(address).json()
        assert list(events) == []
    for unknown in ("none", "a%2Fevents"):  # no name ends in events
        unknown_address = f"{address_of(calibration)}/evaluations/{unknown}"
        with stream_of(client, unknown_address) as (response, _):
            assert response.json()["type"] == "urn:howsure:problem:not-found"


def test_the_number_of_streams_is_limited(idle) -> None:
    """There are more of them than threads for all other requests."""
    client, database = idle
    ended = finished_calibration(database, "other")
    row = queue_calibration(database)
    with ExitStack() as stack:
        streams = [stack.enter_context(stream_of(client, address_of(row))) for _ in range(PLACES)]
        assert {next(events)[0] for _, events in streams} == {"progress"}
        with stream_of(client, address_of(row)) as (refused, _):
            assert refused.status_code == httpx.codes.TOO_MANY_REQUESTS
            assert int(refused.headers["retry-after"]) > 0
        assert client.get(address_of(row)).status_code == OK
        with stream_of(client, address_of(ended)) as (_, events):
            assert next(events)[0] == "end"

        # The place of a client that left is free.
        streams[0][0].close()

        def may_follow() -> bool:
            with stream_of(client, address_of(row)) as (response, _):
                return response.status_code == OK

        assert wait_until(may_follow)
        client.post(f"{address_of(row)}/cancel")
        assert {next(events)[0] for _, events in streams[1:]} == {"end"}


def test_streams_are_closed_when_the_service_stops(tmp_path) -> None:
    """It is closed without an end, so that its client comes again, and is not cut off."""
    listener = bind("127.0.0.1", 0)
    settings = Settings(data_dir=tmp_path, device="cpu", workers=0, _env_file=None)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with ExitStack() as stack, httpx.Client(base_url=url) as client:
        with running(settings, sockets=[listener], start_child=SERVER.start_child):
            database = open_database(settings.resolved_database_url())
            row = queue_calibration(database)
            database.dispose()
            _, events = stack.enter_context(stream_of(client, address_of(row)))
            assert next(events)[0] == "progress"
        assert list(events) == []
