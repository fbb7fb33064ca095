"""``GET /models`` and ``howsure_models_loaded``: the models in memory."""

import hashlib
import time

import httpx
import pytest
from job_workspaces import inputs_set
from runner_children import wait_until
from runner_models import linear, rows, weights
from running_service import calibrated, scrape, service_on

pytestmark = pytest.mark.process


def held(client: httpx.Client) -> list[dict]:
    return client.get("/models").json()["models"]


def ask(client: httpx.Client, name: str) -> None:
    body = {"calibration": name, "inputs": rows(3).tolist()}
    assert client.post("/predict", json=body).status_code == httpx.codes.OK


def test_models_are_listed_by_last_use_and_the_oldest_is_unloaded(tmp_path) -> None:
    models = {name: linear(weights(seed=n)).SerializeToString() for n, name in enumerate("abc")}
    with service_on(tmp_path, max_processes=2) as client:
        calibrated(client, {"name": "a"}, model=models["a"], calibration=inputs_set())
        assert held(client) == []
        # That of the job.
        assert scrape(client)("models_loaded") == 1
        began = time.monotonic()
        ask(client, "a")
        assert scrape(client)("models_loaded") == 2
        for name in "bc":
            calibrated(client, {"name": name}, model=models[name], calibration=inputs_set())
        for name in "ba":
            ask(client, name)
        first, second = held(client)
        assert (first["name"], second["name"]) == ("a@1", "b@1")
        assert first["sha256"] == hashlib.sha256(models["a"]).hexdigest()
        assert first["memory_bytes"] > 2**20
        assert first["pending_requests"] == 0
        assert 0 <= first["seconds_unused"] <= second["seconds_unused"]
        ask(client, "c")
        states = held(client)
    assert [(state["name"], state["status"]) for state in states] == [
        ("c@1", "loaded"),
        ("a@1", "loaded"),
    ]
    assert states[1]["seconds_unused"] <= time.monotonic() - began


def test_waiting_requests_are_pending_and_a_dead_model_is_unloaded(busy) -> None:
    with busy.occupied():
        others = [busy.begin() for _ in range(2)]
        assert wait_until(lambda: held(busy.client)[0]["pending_requests"] == 2)
    assert all(other.result().status_code == httpx.codes.OK for other in others)
    assert held(busy.client)[0]["status"] == "loaded"
    busy.kill()
    assert wait_until(lambda: held(busy.client)[0]["status"] == "unloaded")
    dead = held(busy.client)[0]
    assert dead["memory_bytes"] == 0
    assert {dead[key] for key in ("device", "provider", "parity")} == {None}
    assert busy.ask().status_code == httpx.codes.OK
    assert held(busy.client)[0]["status"] == "loaded"
