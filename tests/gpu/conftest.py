"""The device of these tests, and why they are skipped where there is none.

``HOWSURE_TEST_DEVICE=cpu`` points them at the CPU, where all must pass as well: that tells a test
that is wrong from a device that is.
"""

import os

import pytest

from service.child.onnx.watchdog import Watchdog
from service.errors import InferenceFailed
from service.runner.pool import RunnerPool


def usable(requested):
    """Return the first of the devices; skip if a child process finds that one is of no use."""
    with RunnerPool(device=requested) as pool:
        try:
            return pool.device().name
        except InferenceFailed as error:
            pytest.skip(error.message)


@pytest.fixture(scope="session")
def device():
    """The name of a device that really runs models: ``cuda:0``."""
    return usable(os.environ.get("HOWSURE_TEST_DEVICE", "cuda"))


@pytest.fixture(scope="session")
def gpu(device):
    """The same, but never the CPU."""
    if device == "cpu":
        pytest.skip("this is of a GPU alone")
    return device


@pytest.fixture(scope="session")
def two_devices(device):
    """The names of two devices."""
    if device == "cpu":
        return ("cpu", "cpu")
    usable("cuda:0,cuda:1")
    return ("cuda:0", "cuda:1")


@pytest.fixture(scope="session")
def pool(device):
    """A pool on the device."""
    with RunnerPool(device=device, max_processes=2) as shared:
        yield shared


@pytest.fixture(scope="session")
def cpu_pool():
    """A pool on the CPU, to compare with."""
    with RunnerPool(device="cpu", max_processes=2) as shared:
        yield shared


@pytest.fixture
def watchdog():
    return Watchdog()
