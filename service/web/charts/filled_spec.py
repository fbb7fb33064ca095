"""The spec of a figure with its data, as browsers draw it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from service.web.charts.figure import Figure

SPECS = Path(__file__).parent / "specs"


def filled_spec(figure: Figure) -> dict[str, Any]:
    """Return Vega-Lite with the rows and parameters of a figure, its colours CSS variables."""
    spec: dict[str, Any] = json.loads(_text(figure.chart))
    parameters = [
        {**one, "value": figure.parameters.get(one["name"], one["value"])}
        for one in spec.get("params", [])
    ]
    return spec | {"datasets": figure.data} | ({"params": parameters} if parameters else {})


@cache
def _text(chart: str) -> str:
    return (SPECS / f"{chart}.json").read_text(encoding="utf-8")
