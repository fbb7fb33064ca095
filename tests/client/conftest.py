"""A running service for the clients, and a quick calibration on it."""

from collections.abc import Iterator

import pytest
from howsure_command import ServedProcess
from running_service import DIGITS

from howsure.client import Client

# As little work as a calibration can be.
QUICK = {"measures": ["entropy"], "bins": 5, "folds": 2}


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service."""
    with ServedProcess(tmp_path_factory.mktemp("served")) as client:
        yield str(client.base_url)


@pytest.fixture(scope="session")
def digits(url: str) -> str:
    """A calibration of the digits, made from files: its ``name@version``."""
    with Client(url) as client:
        made = client.calibrate(
            DIGITS / "model.onnx", DIGITS / "calibration.npz", name="digits", **QUICK
        )
    return made.reference
