"""Errors of the API in the words and units of the page's form."""

from collections.abc import Mapping
from typing import Any

from service.reports.operating_point_routes import MOST_VOLUME
from service.reports.operating_points import MAX_AUTHOR_CHARACTERS, MAX_REASON_CHARACTERS
from service.web.operating_point.choice import CONTROLS, LABELS

# The page's label of each parameter of the API, and what its field takes.
LABEL_OF = {CONTROLS.get(name, name): label for name, label in LABELS.items()}
EXPECTED: Mapping[str, str] = {
    "max_risk": "expected a percentage above 0 and below 100",
    "coverage": "expected a percentage above 0, at most 100",
    "threshold": "expected a number",
    "delta": "expected a percentage of calibration sets above 0 and below 100",
    "volume": f"expected a whole number from 1 to {MOST_VOLUME:,}",
    "name": "expected a lowercase letter, then up to 63 lowercase letters, digits, `_` and `-`",
    "author": f"expected 1 to {MAX_AUTHOR_CHARACTERS} printable characters, on one line",
    "reason": f"expected 1 to {MAX_REASON_CHARACTERS} printable characters, on one line",
}
PARTS = ("query", "body")  # of a request, whose schema found the error


def on_page(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Return a problem of the API whose errors name the ``field`` of the page.

    Errors of the API's schema are in its units, so the page's units replace their message.
    """
    return {**problem, "errors": [_of_field(found) for found in problem.get("errors") or ()]}


def _of_field(found: Mapping[str, Any]) -> Mapping[str, Any]:
    part, _, name = str(found["location"]).rpartition(".")
    if name not in LABEL_OF:
        return found
    message = EXPECTED[name] if part in PARTS else found["message"]
    return {**found, "field": LABEL_OF[name], "message": message}
