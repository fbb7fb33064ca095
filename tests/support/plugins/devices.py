"""Tests on each device: a pytest plugin."""

import os
from functools import partial

import graph_models
import pytest
from runner_models import run_on

from service.errors import InferenceFailed
from service.runner.pool import RunnerPool


def usable(requested: str) -> str:
    """Return the first of the devices; skip if a child process finds that one is of no use."""
    with RunnerPool(device=requested) as pool:
        try:
            return pool.device().name
        except InferenceFailed as error:
            pytest.skip(error.message)


@pytest.fixture(scope="session")
def device() -> str:
    """The name of a device that really runs models: ``cuda:0``.

    ``HOWSURE_TEST_DEVICE=cpu`` points tests of GPUs at the CPU, where all must pass as well: that
    tells a test that is wrong from a device that is.
    """
    return usable(os.environ.get("HOWSURE_TEST_DEVICE", "cuda"))


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=[pytest.mark.gpu, pytest.mark.slow])])
def each_device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The CPU, and a GPU, on which all graphs of the test run then."""
    if request.param == "cpu":
        return "cpu"
    name = request.getfixturevalue("device")
    monkeypatch.setattr(graph_models, "run_session", partial(run_on, name))
    return name
