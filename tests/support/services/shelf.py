"""The shelf: calibrations by name on the service of a worker, each made once, when first asked for.

Tests only read them. To add one, add a line to `SHELF`.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from keyed_service import logits_of
from report_scenarios import SCENARIOS
from running_service import DIGITS_PARTS, Service, calibrated, digits

SMALL_MODEL = Path(__file__).parents[2] / "data" / "passes" / "member_other_input.onnx"
SHELF: dict[str, Callable[[httpx.Client, str], dict[str, Any]]] = {
    "quick-digits": lambda client, name: calibrated(client, {"name": name}, **DIGITS_PARTS),
    "evaluated-digits": lambda client, name: calibrated(
        client, {"name": name}, **DIGITS_PARTS, evaluation=digits("evaluation.npz")
    ),
    # A model of another size, on the same set.
    "small-digits": lambda client, name: calibrated(
        client, {"name": name}, **DIGITS_PARTS | {"model": SMALL_MODEL.read_bytes()}
    ),
    # Three classes, from outputs alone.
    "logits": lambda client, name: calibrated(client, {"name": name}, calibration=logits_of()),
    **SCENARIOS,
}


@pytest.fixture(scope="session")
def shelf(service: Service) -> Callable[[str], dict[str, Any]]:
    """Give the resource of a calibration by its name on the shelf, which is its name."""
    return cache(lambda name: SHELF[name](service.client, name))
