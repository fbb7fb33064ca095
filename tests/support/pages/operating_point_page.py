"""The page of operating points: its address, its form and what was decided."""

from typing import Any

import httpx
from keyed_service import KeyedService
from model_services import HOSTILE
from page_visitor import Visitor, elements

SIGNED = {"author": HOSTILE, "reason": HOSTILE}


def address(calibration: str, **chosen: Any) -> str:
    """Return the address of the page with something chosen."""
    query = f"?{httpx.QueryParams(chosen)}" if chosen else ""
    return f"/pages/calibrations/{calibration}/operating-point{query}"


def save(visitor: Visitor, calibration: str, **fields: str) -> httpx.Response:
    """Send the form of the page that was opened last, as it is but for what is typed."""
    assert visitor.seen is not None
    hidden = {
        str(a["name"]): str(a["value"])
        for tag, a in elements(visitor.seen.text)
        if tag == "input" and a.get("form") == "save"
    }
    named = {"form": "save", "name": "automatic", "despite": "yes"}
    typed = hidden | named | SIGNED | fields
    return visitor.send(address(calibration) + "s", **typed)


def history(service: KeyedService, calibration: str) -> list[dict[str, Any]]:
    """Return the decisions, newest first."""
    answer = service.client().get(f"/calibrations/{calibration}/operating-points")
    return answer.json()["operating_points"]
