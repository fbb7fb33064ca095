from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from running_service import calibrate, digits, service_on


@dataclass(frozen=True)
class Service:
    client: httpx.Client
    folder: Path


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    with service_on(folder) as client:
        yield Service(client, folder)


@pytest.fixture(scope="module")
def client(service: Service) -> httpx.Client:
    return service.client


@pytest.fixture(scope="module")
def digits_calibration(client: httpx.Client) -> dict:
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
    return resource
