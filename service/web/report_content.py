"""What the report shows, as its page and its file have it: `templates/report_body.html`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from service.web.charts.drawn import DrawnCharts
from service.web.pointed import Pointed

# The sentence is about answers that were said to be as sure as this, or as near as there are any.
SAID = 0.95
FEWEST = 20
FEW_CLASSES = 5


def report_content(report: Mapping[str, Any], chart: DrawnCharts) -> dict[str, Any]:
    """Return what the template names.

    Parameters
    ----------
    report : mapping
        As ``GET /report`` gives it.
    chart : DrawnCharts
        Its figures.
    """
    return {
        "report": report,
        "shown": Pointed(report),
        "chart": chart,
        "events": [_event(k, event) for k, event in report["events"].items()],
        "fewest": _fewest(report["provenance"]),
        "config": json.dumps(report["provenance"]["config"], indent=2, ensure_ascii=False),
    }


def _event(k: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return where in the report the numbers of an event's section are."""
    served = event["served"]
    table = event["measures"][served]
    known = table.get("reliability")
    return {
        "k": k,
        "at": ("events", k),
        "served": served,
        "table_at": ("events", k, "measures", served),
        "bins": len(table["bins"]),
        "verdict": event["verdict"],
        "figures": event["figures"],
        "held_out": None if known is None else known["held_out"],
        "said": None if known is None else _said(known["after"]),
        "widest": _widest(table["bins"]),
    }


def _said(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """Return which row of the reliability tells of about so sure answers."""
    enough = [index for index, row in enumerate(rows) if row["count"] >= FEWEST]

    def far_and_few(index: int) -> tuple[float, int]:
        # Alike to the percent: of those, the one that most is known of.
        return round(abs(rows[index]["said"] - SAID), 2), -rows[index]["count"]

    return min(enough, key=far_and_few, default=None)


def _fewest(provenance: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the classes of which there are the fewest samples, a few of them."""
    counts = provenance["data"].get("class_counts") or []
    names = provenance["config"]["classes"]
    order = sorted(range(len(counts)), key=lambda index: counts[index])[:FEW_CLASSES]
    return [{"index": index, "name": names[index]} for index in order]


def _widest(bins: Sequence[Mapping[str, Any]]) -> int | None:
    widths = [found["interval"][1] - found["interval"][0] for found in bins]
    return max(range(len(widths)), key=widths.__getitem__, default=None)
