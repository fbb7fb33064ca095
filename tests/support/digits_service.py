"""Fixtures: services in this process, and a calibration of the digits example."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from running_service import calibrate, digits, service_on


@dataclass(frozen=True)
class Service:
    client: httpx.Client
    folder: Path


@dataclass(frozen=True)
class Calibrated:
    """The data folder of a service that ended, and what it said of its calibration."""

    folder: Path
    resource: dict[str, Any]


@pytest.fixture(scope="session")
def calibrated_digits(tmp_path_factory: pytest.TempPathFactory) -> Calibrated:
    folder = tmp_path_factory.mktemp("digits")
    with service_on(folder) as client:
        answer = calibrate(
            client,
            model=digits("model.onnx"),
            calibration=digits("calibration.npz"),
            evaluation=digits("evaluation.npz"),
            config='{"name": "digits", "bins": 10}',
        )
    assert answer.status_code == httpx.codes.CREATED, answer.text
    resource = answer.json()
    assert resource["status"] == "succeeded", resource["error"]
    return Calibrated(folder, resource)


@pytest.fixture(scope="module")
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service of a module's own; where its tests use `digits_calibration`, it has that."""
    folder = tmp_path_factory.mktemp("service")
    of_module = [item for item in request.session.items if item.path == request.path]
    if any("digits_calibration" in item.fixturenames for item in of_module):
        shutil.copytree(
            request.getfixturevalue("calibrated_digits").folder, folder, dirs_exist_ok=True
        )
    with service_on(folder) as client:
        yield Service(client, folder)


@pytest.fixture(scope="module")
def client(service: Service) -> httpx.Client:
    return service.client


@pytest.fixture(scope="module")
def digits_calibration(service: Service, calibrated_digits: Calibrated) -> dict[str, Any]:
    return calibrated_digits.resource
