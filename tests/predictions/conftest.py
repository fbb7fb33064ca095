"""One service with the digits calibration for all modules that only ask it."""

import shutil
from collections.abc import Iterator

import pytest
from digits_service import Calibrated, Service
from running_service import service_on


@pytest.fixture(scope="session")
def service(
    calibrated_digits: Calibrated, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    shutil.copytree(calibrated_digits.folder, folder, dirs_exist_ok=True)
    with service_on(folder) as client:
        yield Service(client, folder)


@pytest.fixture(scope="session")
def client(service: Service) -> object:
    return service.client
