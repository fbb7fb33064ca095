"""The service says whether models are locked in; where they cannot be, it refuses them."""

import json
import os
import subprocess
import sys

import httpx
import pytest
import without_landlock

LACKING = "none: the kernel lacks Landlock"


def answered(folder, how):
    """Return what a service answers on a kernel without Landlock."""
    run = subprocess.run(
        [sys.executable, without_landlock.__file__, str(folder), how],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_it_is_alive_and_ready_with_models_locked_in(client):
    assert client.get("/healthz").json() == {
        "status": "alive",
        "sandbox": "full",
        "sandbox_missing": [],
    }
    assert client.get("/readyz").json()["checks"]["sandbox"] == "full"


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    return answered(tmp_path_factory.mktemp("refusing"), "refused")


def test_without_landlock_it_is_alive_and_not_ready(refusing):
    status, alive = refusing["alive"]
    assert status == httpx.codes.OK
    assert (alive["sandbox"], alive["sandbox_missing"]) == ("none", ["Landlock"])
    status, ready = refusing["ready"]
    assert status == httpx.codes.SERVICE_UNAVAILABLE
    assert ready["checks"]["sandbox"].startswith(LACKING)


def test_without_landlock_a_model_is_refused(refusing):
    status, problem = refusing["uploaded"]
    assert status == httpx.codes.SERVICE_UNAVAILABLE
    assert problem["type"] == "urn:howsure:problem:sandbox-unavailable"
    assert "HOWSURE_ALLOW_UNSANDBOXED=true" in problem["detail"]


def test_who_allows_it_runs_models_without_landlock(tmp_path):
    found = answered(tmp_path, "allowed")
    assert found["ready"] == [
        httpx.codes.OK,
        {"ready": True, "checks": found["ready"][1]["checks"]},
    ]
    assert found["ready"][1]["checks"]["sandbox"] == LACKING
    assert found["alive"][1]["sandbox"] == "none"
    assert found["uploaded"][1]["status"] == "succeeded"
