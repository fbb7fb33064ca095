"""``/report`` of several calibrations for people: side by side, and each against the first."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from service.operations.compare import compare_calibrations
from service.web.asker import charts_of, tenant_of, workspace_of
from service.web.charts.drawn import draw_charts
from service.web.compared_events import compared_events
from service.web.page import page
from service.web.pointed import Pointed

DIGITS = 12  # of a digest: they tell the files of one page apart

Json = Mapping[str, Any]


async def compare(request: Request, references: Sequence[str]) -> Response:
    """Show several calibrations, the first being what the others are compared with."""
    found = await run_in_threadpool(
        compare_calibrations, workspace_of(request), tenant_of(request), references
    )
    chart = await run_in_threadpool(draw_charts, charts_of(request), found, ("comparison",))
    reports = found["calibrations"]
    ids = [report["calibration"]["id"] for report in reports]
    return page(
        request,
        "compare.html",
        shown=Pointed(found),
        columns=[_column(at, report, ids) for at, report in enumerate(reports)],
        against=[_against(at, found) for at in range(len(found["comparisons"]))],
        events=compared_events(found),
        json=f"{_address(ids)}&format=json",
        chart=chart,
    )


def _address(ids: Sequence[str]) -> str:
    """Return where calibrations are compared with the first of them."""
    return f"/report?{urlencode([('calibration', found) for found in ids])}"


def _column(at: int, report: Json, ids: Sequence[str]) -> dict[str, Any]:
    data, onnx_model = report["provenance"]["data"], report["provenance"]["model"]
    return {
        "at": ("calibrations", at),
        "about": report["calibration"],
        "as_first": _address([ids[at], *ids[:at], *ids[at + 1 :]]),
        "model": None if onnx_model is None else _digest(onnx_model["sha256"]),
        "label": None if onnx_model is None else onnx_model["label"],
        "data": _digest(data["sha256"]),
        "evaluation": _digest(data.get("evaluation_sha256")),
    }


def _digest(sha256: str | None) -> str | None:
    return None if sha256 is None else sha256[:DIGITS]


def _against(at: int, found: Json) -> dict[str, Any]:
    """Return what a comparison with the first is made on, and what it says."""
    comparison = found["comparisons"][at]
    first, second = (
        found["calibrations"][place]["provenance"]["data"]["sha256"] for place in (0, at + 1)
    )
    return {
        "first": comparison["first"],
        "second": comparison["second"],
        "is_judged": any(event["differences"] for event in comparison["events"].values()),
        "is_paired": any(event["paired"] for event in comparison["events"].values()),
        "is_same_set": first == second,
        "sentences": comparison["sentences"],
    }
