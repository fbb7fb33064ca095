"""The shelf: calibrations by name on the service of a worker, each made once, when first asked for.

Tests only read them. To add one, add a line to `SHELF`.
"""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from keyed_service import logits_of
from report_scenarios import SCENARIOS
from running_service import DIGITS_PARTS, Service, calibrated, digits

SHELF: dict[str, Callable[[httpx.Client, str], dict[str, Any]]] = {
    "quick-digits": lambda client, name: calibrated(client, {"name": name}, **DIGITS_PARTS),
    "evaluated-digits": lambda client, name: calibrated(
        client, {"name": name}, **DIGITS_PARTS, evaluation=digits("evaluation.npz")
    ),
    # Three classes, from outputs alone.
    "logits": lambda client, name: calibrated(client, {"name": name}, calibration=logits_of()),
    **SCENARIOS,
}


class Shelf:
    """Gives the resource of a calibration by its name on the shelf, which is its name."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._resources: dict[str, dict[str, Any]] = {}

    def __call__(self, name: str) -> dict[str, Any]:
        """Return the resource of a calibration."""
        if name not in self._resources:
            self._resources[name] = SHELF[name](self._client, name)
        return self._resources[name]


@pytest.fixture(scope="session")
def shelf(service: Service) -> Shelf:
    """Calibrations that tests only read."""
    return Shelf(service.client)
