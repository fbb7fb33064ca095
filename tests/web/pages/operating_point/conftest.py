"""A calibration for the page of operating points, and a version of which nothing was decided."""

from collections.abc import Iterator

import pytest
from keyed_service import KeyedService
from running_service import calibrated, refit


@pytest.fixture(scope="module")
def calibration(service: KeyedService) -> str:
    """Make a calibration of a model that errs where it is least sure, every other time."""
    lines = ["label,logit_0,logit_1,logit_2"]
    for row in range(600):
        sure = 0.01 * (row * 37 % 600 + 1)
        lines.append(f"{1 if sure < 1.2 and row % 2 else 0},{sure:.4f},0,0")
    content = "\n".join(lines).encode()
    return calibrated(service.client(), {"name": "point", "bins": 6}, calibration=content)["id"]


@pytest.fixture
def undecided(service: KeyedService, calibration: str) -> Iterator[str]:
    """Yield a version of which nothing was decided."""
    client = service.client()
    made = refit(client, calibration, bins=5).json()
    assert made["status"] == "succeeded"
    yield made["id"]
    assert client.delete(f"/calibrations/{made['id']}").is_success
