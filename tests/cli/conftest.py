"""A running service for commands, which start quicker than those that embed one."""

import json
from collections.abc import Iterator

import httpx
import pytest
from howsure_command import Done, ServedProcess, howsure_here
from running_service import DIGITS

from howsure.client import Client

QUICK = {"measures": ["entropy"], "bins": 5, "folds": 2}
CLASSES = [f"digit {k}" for k in range(10)]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A service that holds two calibrations: of the model, ``digits``, and of its ``logits``."""
    with ServedProcess(tmp_path_factory.mktemp("service")) as client:
        with Client(str(client.base_url)) as uploading:
            uploading.calibrate(None, DIGITS / "calibration_logits.csv", name="logits", **QUICK)
            model, samples = DIGITS / "model.onnx", DIGITS / "calibration.npz"
            uploading.calibrate(model, samples, name="digits", classes=CLASSES, **QUICK)
        yield client


@pytest.fixture
def command(service: httpx.Client):
    """Run a command on that service, in this process."""

    def run(*arguments: object, status: int = 0, **settings: str) -> Done:
        done = howsure_here(*arguments, HOWSURE_URL=str(service.base_url), **settings)
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def quick() -> tuple[str, str]:
    """Options of a calibration that is quickly made."""
    return "--config", json.dumps(QUICK)
