"""``GET /models`` and ``howsure_models_loaded``: the models in memory."""

import hashlib

import httpx
import pytest
from job_workspaces import inputs_set
from runner_children import wait_until
from runner_models import linear, rows, weights
from running_service import calibrated, scrape, service_on

pytestmark = pytest.mark.process


def held(client: httpx.Client) -> list[dict]:
    return client.get("/models").json()["models"]


def test_models_are_listed_by_last_use_and_the_oldest_is_unloaded(tmp_path) -> None:
    models = {name: linear(weights(seed=n)).SerializeToString() for n, name in enumerate("abc")}
    with service_on(tmp_path, max_processes=2) as client:
        for name, model in models.items():
            calibrated(client, {"name": name}, model=model, calibration=inputs_set())
            if name == "a":
                # That of the job.
                assert (held(client), scrape(client)("models_loaded")) == ([], 1)
        states = []
        for name in "abac":
            body = {"calibration": name, "inputs": rows(3).tolist()}
            client.post("/predict", json=body).raise_for_status()
            states.append(held(client))
        # Two of predictions, and two of jobs.
        assert scrape(client)("models_loaded") == 4
    first, second = states[2]
    assert (first["name"], second["name"]) == ("a@1", "b@1")
    assert first["sha256"] == hashlib.sha256(models["a"]).hexdigest()
    assert first["memory_bytes"] > 2**20
    assert first["pending_requests"] == 0
    assert 0 <= first["seconds_unused"] <= second["seconds_unused"]
    loaded = [("c@1", "loaded"), ("a@1", "loaded")]
    assert [(state["name"], state["status"]) for state in states[3]] == loaded


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
