"""Slow models hold up who asks them, and nobody else."""

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from job_workspaces import TOO_LARGE, inputs_set
from own_time import Stopwatch
from runner_models import endless_above, rows
from running_service import calibrate, service_on

QUEUED_ROWS = 5
AT_ONCE = 45
SOON = 2.0
PATHS = ["/healthz", "/readyz", "/calibrations", "/report?calibration=slow"]


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crowded")
    with service_on(folder, predict_queue_rows=QUEUED_ROWS, run_timeout_seconds=6.0) as client:
        made = calibrate(
            client,
            model=endless_above(1000.0).SerializeToString(),
            calibration=inputs_set(),
            config='{"name": "slow", "bins": 5}',
        )
        assert made.json()["status"] == "succeeded", made.text
        quick = {"calibration": "slow", "inputs": rows(1).tolist()}
        assert client.post("/predict", json=quick).status_code == httpx.codes.OK
        body = {"calibration": "slow", "inputs": (rows(1) + TOO_LARGE).tolist()}

        def ask() -> tuple[httpx.Response, float]:
            watch = Stopwatch()
            return client.post("/predict", json=body, timeout=60), watch.seconds()

        with ThreadPoolExecutor(AT_ONCE) as threads:
            asked = [threads.submit(ask) for _ in range(AT_ONCE)]
            time.sleep(0.5)
            yield client, asked


@pytest.mark.parametrize("path", PATHS)
def test_everything_else_is_answered_meanwhile(crowded, path) -> None:
    client, asked = crowded
    watch = Stopwatch()
    answer = client.get(path)
    assert answer.status_code == httpx.codes.OK
    assert watch.seconds() < SOON
    assert sum(not future.done() for future in asked) >= QUEUED_ROWS


def test_who_finds_no_room_to_wait_is_told_so_at_once(crowded) -> None:
    _, asked = crowded
    answers = [future.result(60) for future in asked]
    refused = [
        (answer, seconds)
        for answer, seconds in answers
        if answer.status_code == httpx.codes.TOO_MANY_REQUESTS
    ]
    served = [answer for answer, _ in answers if answer.status_code == 504]
    # As many as may wait, and those that were taken to the model meanwhile.
    assert len(served) >= QUEUED_ROWS
    assert len(refused) == AT_ONCE - len(served)
    assert len(refused) > AT_ONCE // 2
    for answer, seconds in refused:
        assert seconds < SOON
        assert answer.json()["type"] == "urn:howsure:problem:too-many-requests"
        assert int(answer.headers["Retry-After"]) > 0
