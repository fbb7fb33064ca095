"""On SIGTERM a service answers waiting clients, hands its job back and ends."""

import signal
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fault_plan.stored_jobs import stored_jobs
from howsure_command import ServedProcess
from job_workspaces import inputs_set
from runner_children import wait_until
from runner_models import endless_above
from running_service import calibrate

CLIENTS = 2
# Longer than any test may take: only the end of the service ends the wait.
WAIT_SECONDS = 3600


@pytest.mark.process
def test_clients_that_wait_get_the_resource_as_it_stands(tmp_path) -> None:
    parts = {
        "model": endless_above(1000.0).SerializeToString(),
        "calibration": inputs_set(ends=False),
        "wait": WAIT_SECONDS,
    }
    served = ServedProcess(tmp_path, max_wait_seconds=str(WAIT_SECONDS))
    with served as client, ThreadPoolExecutor(CLIENTS) as threads:
        waiting = [threads.submit(calibrate, client, **parts) for _ in range(CLIENTS)]

        def both_are_queued_and_one_runs() -> bool:
            listed = client.get("/calibrations").json()["calibrations"]
            return len(listed) == CLIENTS and any(c["status"] == "running" for c in listed)

        assert wait_until(both_are_queued_and_one_runs)
        served.process.send_signal(signal.SIGTERM)
        answers = [future.result() for future in waiting]
        served.process.wait()

    assert [answer.status_code for answer in answers] == [httpx.codes.ACCEPTED] * CLIENTS
    assert {answer.json()["status"] for answer in answers} == {"queued", "running"}
    jobs = stored_jobs(f"sqlite:///{tmp_path / 'howsure.sqlite3'}")
    assert {job.id for job in jobs} == {answer.json()["id"] for answer in answers}
    assert {(job.status, job.attempt, job.error) for job in jobs} == {("queued", 0, None)}
