"""Commands on the service that tests share."""

import json

import pytest
from howsure_command import Done, howsure
from running_service import QUICK, Service


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
