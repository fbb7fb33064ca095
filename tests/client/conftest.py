"""The address of the service that tests share, and of its calibration of the digits."""

from collections.abc import Iterator

import pytest
from running_service import Service

from howsure.client import Client


@pytest.fixture(scope="session")
def url(service: Service) -> str:
    """The address of a service."""
    return service.url


@pytest.fixture(scope="session")
def client(url: str) -> Iterator[Client]:
    """A client of it that waits."""
    with Client(url) as client:
        yield client


@pytest.fixture(scope="session")
def digits(digits_calibration: dict) -> str:
    """A calibration of the digits that nobody changes: its ``name@version``."""
    return "{name}@{version}".format_map(digits_calibration)
