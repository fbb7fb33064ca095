"""The service says whether models are locked in; where they cannot be, it refuses them."""

from functools import partial

import pytest
from forked_children import SERVER
from running_service import DIGITS_PARTS, calibrate, quick_config, service_on

from service.child.lockdown import support
from service.runner.messages.sandbox_rules import find_sandbox

pytestmark = pytest.mark.process


def test_it_is_alive_and_ready_with_models_locked_in(client):
    alive = {"status": "alive", "sandbox": "full", "sandbox_missing": []}
    assert client.get("/healthz").json() == alive
    assert client.get("/readyz").json()["checks"]["sandbox"] == "full"


@pytest.fixture
def kernel_without_landlock(monkeypatch):
    """Landlock is unknown to this process, and to the children that are started."""
    monkeypatch.setattr(support, "landlock_version", lambda: 0)
    find_sandbox.cache_clear()
    yield partial(SERVER.start_program, "locked_child", "", "without Landlock")
    find_sandbox.cache_clear()


@pytest.mark.parametrize("is_allowed", [False, True])
def test_without_landlock_models_run_if_allowed(tmp_path, kernel_without_landlock, is_allowed):
    options = {"start_child": kernel_without_landlock, "allow_unsandboxed": is_allowed}
    with service_on(tmp_path, **options) as client:
        made = calibrate(client, **DIGITS_PARTS, config=quick_config())
        alive, ready = client.get("/healthz").json(), client.get("/readyz")
    assert alive == {"status": "alive", "sandbox": "none", "sandbox_missing": ["Landlock"]}
    assert ready.json()["checks"]["sandbox"][:4] == "none"
    if is_allowed:
        assert (ready.status_code, made.json()["status"]) == (200, "succeeded")
    else:
        assert (ready.status_code, made.status_code) == (503, 503)
        assert made.json()["type"] == "urn:howsure:problem:sandbox-unavailable"
        assert "HOWSURE_ALLOW_UNSANDBOXED=true" in made.json()["detail"]
