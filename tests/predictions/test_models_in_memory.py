"""``GET /models`` and ``howsure_models_loaded``: the models in memory."""

import hashlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from job_workspaces import inputs_set
from runner_children import StartedChildren, wait_until
from runner_models import linear, rows, weights
from running_service import service_on
from scraped import scrape
from uploads import calibrated, quick_config


def model(seed: int) -> bytes:
    return linear(weights(seed=seed)).SerializeToString()


def make(client: httpx.Client, name: str, content: bytes) -> None:
    config = quick_config(name=name)
    calibrated(client, config, model=content, calibration=inputs_set())


def ask(client: httpx.Client, name: str) -> httpx.Response:
    body = {"calibration": name, "inputs": rows(3).tolist()}
    return client.post("/predict", json=body)


def held(client: httpx.Client) -> list[dict]:
    return client.get("/models").json()["models"]


@pytest.fixture
def started():
    return StartedChildren()


@pytest.fixture
def client(tmp_path, started):
    with service_on(tmp_path, start_child=started.start_child, max_processes=2) as client:
        yield client


def test_the_one_used_last_is_first_and_the_third_takes_the_place_of_another(client) -> None:
    assert held(client) == []
    for seed, name in enumerate("abc"):
        make(client, name, model(seed))
    assert held(client) == []
    began = time.monotonic()
    for name in "aba":
        assert ask(client, name).status_code == httpx.codes.OK
    first, second = held(client)
    assert (first["name"], second["name"]) == ("a@1", "b@1")
    assert first["sha256"] == hashlib.sha256(model(0)).hexdigest()
    assert first["memory_bytes"] > 2**20
    assert first["pending_requests"] == 0
    assert 0 <= first["seconds_unused"] <= second["seconds_unused"]
    ask(client, "c")
    found = held(client)
    assert [state["name"] for state in found] == ["c@1", "a@1"]
    assert {state["status"] for state in found} == {"loaded"}
    assert found[1]["seconds_unused"] <= time.monotonic() - began


def test_models_of_predictions_and_of_jobs_are_counted(client) -> None:
    make(client, "a", model(0))
    assert scrape(client)("models_loaded") == 1
    ask(client, "a")
    assert len(held(client)) == 1
    assert scrape(client)("models_loaded") == 2


def test_who_waits_is_pending_and_a_dead_model_is_unloaded(client, started) -> None:
    make(client, "slow", model(0))
    assert ask(client, "slow").status_code == httpx.codes.OK
    own = started.pids()
    with ThreadPoolExecutor(3) as threads:
        for pid in own:
            os.kill(pid, signal.SIGSTOP)
        first = threads.submit(ask, client, "slow")
        assert wait_until(lambda: scrape(client)("running_requests", lane="predict") == 1)
        others = [threads.submit(ask, client, "slow") for _ in range(2)]
        assert wait_until(lambda: held(client)[0]["pending_requests"] == 2)
        for pid in own:
            os.kill(pid, signal.SIGCONT)
        assert all(asked.result().status_code == httpx.codes.OK for asked in (first, *others))
    assert held(client)[0]["status"] == "loaded"
    killed = set(started.pids())
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    # A spare child that is still ending could be given the next request.
    assert wait_until(lambda: not killed & set(started.pids()))
    assert wait_until(lambda: held(client)[0]["status"] == "unloaded")
    dead = held(client)[0]
    assert (dead["device"], dead["provider"], dead["memory_bytes"], dead["parity"]) == (
        None,
        None,
        0,
        None,
    )
    assert ask(client, "slow").status_code == httpx.codes.OK
    assert held(client)[0]["status"] == "loaded"
