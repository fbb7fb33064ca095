"""Progress as server-sent events over HTTP; the test acts as the worker."""

import json
import threading
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
OK, NOT_NOW = httpx.codes.OK, httpx.codes.SERVICE_UNAVAILABLE
EVENT_STREAM = "text/event-stream; charset=utf-8"


class Events:
    """An open stream: its events as they come, and its comments."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.iter_lines()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self

    def __next__(self) -> tuple[str, Any]:
        """Return the name and the content of the next event."""
        fields: dict[str, str] = {}
        for line in self._lines:
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            elif "data" in fields:
                return fields["event"], json.loads(fields["data"])
        raise StopIteration


@contextmanager
def events_of(client: httpx.Client, address: str) -> Iterator[Events]:
    """Open the stream of a job, by its address."""
    with client.stream("GET", f"{address}/events", timeout=30) as response:
        if response.status_code != httpx.codes.OK:
            response.read()
        yield Events(response)


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    """A client of a service that runs no jobs, and its database."""
    folder = tmp_path_factory.mktemp("idle")
    with service_on(folder, workers=0, max_event_streams=2 * PLACES) as client:
        database = open_database(f"sqlite:///{folder / 'howsure.sqlite3'}")
        yield client, database
        database.dispose()


def address_of(row) -> str:
    return f"/calibrations/{row.id}"


def test_a_calibration_is_followed_to_its_end(idle) -> None:
    client, database = idle
    row, queue = queue_calibration(database, "followed"), queue_of(database)
    with events_of(client, "/calibrations/followed@1") as events:
        headers = events.response.headers
        assert (headers["content-type"], headers["cache-control"]) == (EVENT_STREAM, "no-store")
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
        with events_of(client, address_of(row)) as events:
            assert list(events) == [("end", client.get(address_of(row)).json())]


def test_an_evaluation_is_followed_by_its_name(idle) -> None:
    client, database = idle
    calibration = finished_calibration(database)
    queue_evaluation(database, calibration, "by night/in rain")
    queue = evaluation_queue_of(database)
    address = f"{address_of(calibration)}/evaluations/by%20night/in%20rain"
    with events_of(client, address) as events:
        assert next(events) == ("progress", {"status": "queued", "progress": None})
        job = claimed(queue)
        assert next(events)[1]["status"] == "running"
        assert queue.fail(job, {"title": "Test"})
        name, whole = next(events)
        assert (name, whole["error"]) == ("end", {"title": "Test"})
        assert whole == client.get(address).json()
        assert list(events) == []
    for unknown in ("none", "a%2Fevents"):  # no name ends in events
        with events_of(client, f"{address_of(calibration)}/evaluations/{unknown}") as events:
            assert events.response.json()["type"] == "urn:howsure:problem:not-found"


def test_the_number_of_streams_is_limited(idle) -> None:
    """There are more of them than threads for all other requests."""
    client, database = idle
    ended = finished_calibration(database, "other")
    row = queue_calibration(database)
    with ExitStack() as stack:
        streams = [stack.enter_context(events_of(client, address_of(row))) for _ in range(PLACES)]
        assert {next(events)[0] for events in streams} == {"progress"}
        with events_of(client, address_of(row)) as one_more:
            assert one_more.response.status_code == NOT_NOW
            assert int(one_more.response.headers["retry-after"]) > 0
            assert "stream" in one_more.response.json()["detail"]
        assert client.get(address_of(row)).status_code == OK
        with events_of(client, address_of(ended)) as events:
            assert next(events)[0] == "end"

        # The place of a client that left is free.
        streams[0].response.close()

        def may_follow() -> bool:
            with events_of(client, address_of(row)) as one_more:
                return one_more.response.status_code == OK

        assert wait_until(may_follow)
        client.post(f"{address_of(row)}/cancel")
        assert {next(events)[0] for events in streams[1:]} == {"end"}


def test_streams_are_closed_when_the_service_stops(tmp_path) -> None:
    """It is closed without an end, so that its client comes again, and is not cut off."""
    seen: list[str] = []
    has_begun = threading.Event()

    def follow(client, row) -> None:
        with events_of(client, address_of(row)) as events:
            for name, _ in events:
                seen.append(name)
                has_begun.set()
        seen.append("closed")

    listener = bind("127.0.0.1", 0)
    settings = Settings(data_dir=tmp_path, device="cpu", workers=0, _env_file=None)
    with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
        with running(settings, sockets=[listener], start_child=SERVER.start_child):
            database = open_database(settings.resolved_database_url())
            row = queue_calibration(database)
            database.dispose()
            thread = threading.Thread(target=follow, args=(client, row))
            thread.start()
            assert has_begun.wait(30)
        thread.join(30)
    assert seen == ["progress", "closed"]
