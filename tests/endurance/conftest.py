"""A service in its own process, with a seeded model."""

from collections.abc import Iterator

import pytest
from serve.networks import Network, network
from serve.server_process import ServerProcess, calibrate, service


@pytest.fixture(scope="session")
def perceptron() -> Network:
    return network("mlp")


@pytest.fixture(scope="session")
def served(perceptron: Network) -> Iterator[ServerProcess]:
    with service(threads="1") as server:
        calibrate(server, perceptron)
        yield server
