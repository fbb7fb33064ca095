"""Commands on the service that tests share."""

import json
from collections.abc import Iterator

import pytest
from howsure_command import Done, howsure, restored_process
from running_service import QUICK, Service


@pytest.fixture(autouse=True)
def unchanged_process() -> Iterator[None]:
    """Undo what commands, and the functions behind them, change in this process."""
    with restored_process():
        yield


@pytest.fixture
def command(service: Service):
    """Run a command on that service, in this process."""

    def run(*arguments: object, status: int = 0, **settings: str) -> Done:
        done = howsure(*arguments, **{"HOWSURE_URL": service.url} | settings)
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def quick() -> tuple[str, str]:
    """Options of a calibration that is quickly made."""
    return "--config", json.dumps(QUICK)
