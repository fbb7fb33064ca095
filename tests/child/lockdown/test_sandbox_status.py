"""The service says whether models are locked in; where they cannot be, it refuses them."""

import json
import os
import subprocess
import sys

import pytest
import without_landlock

pytestmark = pytest.mark.process


def test_it_is_alive_and_ready_with_models_locked_in(client):
    alive = {"status": "alive", "sandbox": "full", "sandbox_missing": []}
    assert client.get("/healthz").json() == alive
    assert client.get("/readyz").json()["checks"]["sandbox"] == "full"


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What services on a kernel without Landlock answer: one that refuses models, one that not."""
    folder = tmp_path_factory.mktemp("services")
    run = subprocess.run(
        [sys.executable, without_landlock.__file__, str(folder)],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_without_landlock_it_is_alive_and_not_ready_and_refuses_models(answers):
    status, alive = answers["refused"]["alive"]
    assert (status, alive["sandbox"], alive["sandbox_missing"]) == (200, "none", ["Landlock"])
    status, ready = answers["refused"]["ready"]
    assert (status, ready["checks"]["sandbox"][:4]) == (503, "none")
    status, problem = answers["refused"]["uploaded"]
    assert (status, problem["type"]) == (503, "urn:howsure:problem:sandbox-unavailable")
    assert "HOWSURE_ALLOW_UNSANDBOXED=true" in problem["detail"]


def test_who_allows_it_runs_models_without_landlock(answers):
    status, ready = answers["allowed"]["ready"]
    assert (status, ready["ready"], ready["checks"]["sandbox"][:4]) == (200, True, "none")
    assert answers["allowed"]["alive"][1]["sandbox"] == "none"
    assert answers["allowed"]["uploaded"][1]["status"] == "succeeded"
