"""GPUs and pools on them; where there is none the tests are skipped."""

import pytest

from service.runner.pool import RunnerPool


@pytest.fixture(scope="session")
def gpu(device):
    """The same, but never the CPU."""
    if device == "cpu":
        pytest.skip("this is of a GPU alone")
    return device


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
