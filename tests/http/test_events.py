"""Progress as server-sent events, over real HTTP; the test is the worker."""

import threading
from contextlib import ExitStack

import httpx
import pytest
from event_lines import events_of
from forked_children import SERVER
from runner_children import wait_until
from running_service import service_on
from storage_rows import (
    claimed,
    evaluation_queue_of,
    finished_calibration,
    queue_calibration,
    queue_evaluation,
    queue_of,
    tenant_of,
)

from service.cli.connection import running
from service.cli.server import bind
from service.settings import Settings
from service.storage.calibrations import CalibrationRepository
from service.storage.database import open_database

PLACES = 60
OK, NOT_FOUND, NOT_NOW = (
    httpx.codes.OK,
    httpx.codes.NOT_FOUND,
    httpx.codes.SERVICE_UNAVAILABLE,
)
EVENT_STREAM = "text/event-stream; charset=utf-8"


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    """A client of a service that runs no jobs, and its database."""
    folder = tmp_path_factory.mktemp("idle")
    with service_on(folder, workers=0, max_event_streams=PLACES) as client:
        database = open_database(f"sqlite:///{folder / 'howsure.sqlite3'}")
        yield client, database
        database.dispose()


def address_of(row) -> str:
    return f"/calibrations/{row.id}"


def shown(client, address: str) -> dict:
    return client.get(address).json()


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
        name, told = next(events)
        assert (name, told["status"]) == ("progress", "running")
        assert told["progress"] == {
            "stage": "calibration",
            "done": 20,
            "total": 100,
            "rows_per_second": 40.0,
            "eta_seconds": 2.0,
        }
        assert shown(client, address_of(row))["progress"] == told["progress"]
        queue.publish(job, rows=[], artifacts=[], accuracy={"1": 0.9})
        name, whole = next(events)
        assert name == "end"
        assert whole == shown(client, address_of(row))
        assert (whole["status"], whole["accuracy"]) == ("succeeded", {"1": 0.9})
        assert list(events) == []


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_one_that_has_ended_says_so_at_once(idle, status) -> None:
    client, database = idle
    row = finished_calibration(database, status=status)
    with events_of(client, address_of(row)) as events:
        assert list(events) == [("end", shown(client, address_of(row)))]


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
        assert whole == shown(client, address)
        assert list(events) == []


def test_of_a_deleted_one_the_end_says_so(idle) -> None:
    client, database = idle
    row = queue_calibration(database)
    with events_of(client, address_of(row)) as events:
        next(events)
        with database.session() as session:
            repository = CalibrationRepository(session, tenant_of(database))
            repository.request_cancel(row.id)
            repository.delete(row.id)
        assert list(events) == [("end", {"id": str(row.id), "status": "deleted"})]


@pytest.mark.parametrize("address", ["/calibrations/nobody", "/calibrations/{}/evaluations/none"])
def test_what_is_not_there_cannot_be_followed(idle, address) -> None:
    client, database = idle
    row = finished_calibration(database)
    with events_of(client, address.format(row.id)) as events:
        assert events.response.status_code == NOT_FOUND
        assert events.response.json()["type"] == "urn:howsure:problem:not-found"


def test_an_evaluation_cannot_be_called_as_a_stream_is(idle) -> None:
    client, database = idle
    row = finished_calibration(database)
    address = f"{address_of(row)}/evaluations/a%2Fevents"
    assert client.get(address).status_code == NOT_FOUND


def test_streams_are_bounded_and_hold_no_threads(idle) -> None:
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

        streams[0].response.close()
        assert wait_until(lambda: _may_follow(client, row))
        client.post(f"{address_of(row)}/cancel")
        assert {next(events)[0] for events in streams[1:]} == {"end"}


def _may_follow(client, row) -> bool:
    with events_of(client, address_of(row)) as events:
        return events.response.status_code == OK


def test_a_stream_ends_in_good_order_with_its_service(tmp_path) -> None:
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
