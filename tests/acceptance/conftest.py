from collections.abc import Iterator

import httpx
import pytest
from running_service import service_on


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with service_on(tmp_path_factory.mktemp("service")) as client:
        yield client
