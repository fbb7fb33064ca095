"""``/pages/calibrations/{id}/measures``: what each measure costs and brings, side by side."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from service.core.measures import is_supplied
from service.operations.report import collect_report
from service.web.asker import charts_of, tenant_of, workspace_of
from service.web.calibration_page import calibration_page
from service.web.charts.drawn import draw_charts
from service.web.differences import SAME, TIE, verdict_of
from service.web.measure_rows import cross_validated, on_the_evaluation_set
from service.web.page_route import PageRoute
from service.web.pointed import Pointed
from service.web.score_words import SCORES

Json = Mapping[str, Any]


async def measures(request: Request) -> Response:
    """Show them, of each event."""
    reference = request.path_params["calibration_id"]
    found = await run_in_threadpool(
        collect_report, workspace_of(request), tenant_of(request), reference
    )
    address = f"/pages/calibrations/{found['calibration']['id']}/charts"
    chart = await run_in_threadpool(
        draw_charts, charts_of(request), found, ("measures",), address=address
    )
    return calibration_page(
        request,
        "measures.html",
        "measures",
        found["calibration"],
        shown=Pointed(found),
        events=[_event(k, event, found["provenance"]) for k, event in found["events"].items()],
        scores=SCORES,
        passes=_by_passes(found["model_scores"]),
        provider=(found["provenance"]["model"] or {}).get("provider"),
        refit=_refit(found, f"{request.url.scheme}://{request.url.netloc}"),
        is_imported="imported" in found["provenance"]["data"],
        chart=chart,
    )


def _event(k: str, event: Json, provenance: Json) -> dict[str, Any]:
    folds = provenance["config"].get("folds", 0)
    return {
        "k": k,
        "served": event["served"],
        "why": _why(k, event, provenance),
        "verdict": event["verdict"],
        "tied": _tied(event),
        "cheaper": _cheaper(event),
        "tables": [
            ("Cross-validated", True, cross_validated(k, event, folds)),
            ("On the evaluation set", False, on_the_evaluation_set(k, event)),
        ],
    }


def _why(k: str, event: Json, provenance: Json) -> str:
    """Return why what serves does."""
    if "imported" in provenance["data"]:
        return "the imported tables say so"
    if provenance["config"]["serve"].get(k) == event["served"]:
        return "it was asked for, in serve"
    others = [name for name in event["measures"] if not is_supplied(name)]
    if len(others) == 1:
        return "it is the only one that can serve without being asked for"
    return "it has the least cross-validated NLL of those that can serve without being asked for"


def _tied(event: Json) -> list[str]:
    rows = event["comparison"]
    return [row["measure"] for row in rows if verdict_of(row["difference"]) in (SAME, TIE)]


def _cheaper(event: Json) -> dict[str, Any] | None:
    """Return where in the comparison the cheapest is of those that tie and cost less."""
    rows = event["comparison"]
    served = next((at for at, row in enumerate(rows) if row["served"]), None)
    if served is None or rows[served]["ms_per_row"] is None:
        return None
    costs = {
        at: row["ms_per_row"]
        for at, row in enumerate(rows)
        if row["ms_per_row"] is not None and verdict_of(row["difference"]) in (SAME, TIE)
    }
    least = min(costs, key=costs.__getitem__, default=None)
    if least is None or costs[least] >= rows[served]["ms_per_row"]:
        return None
    return {"measure": rows[least]["measure"], "at": least, "served_at": served}


def _refit(found: Json, origin: str) -> dict[str, Any] | None:
    """Return the command that has another measure serve; None where there is no other."""
    for k, event in found["events"].items():
        others = [row["measure"] for row in event["comparison"] if not row["served"]]
        if others:
            # What is left out of `serve` would be chosen anew.
            serve = found["provenance"]["config"]["serve"] | {k: others[0]}
            body = shlex.quote(json.dumps({"serve": serve}, ensure_ascii=False))
            address = f"{origin}/calibrations/{found['calibration']['id']}/refit"
            return {"k": k, "measure": others[0], "body": body, "address": shlex.quote(address)}
    return None


def _by_passes(model_scores: Json) -> list[dict[str, Any]]:
    """Return where the scores of fewer passes are, by set and measure."""
    return [
        {
            "set": name,
            "measure": measure,
            "at": ("model_scores", name, "passes", measure),
            "alone": ("model_scores", name),
            "rows": len(rows),
            "events": list(found["accuracy"]),
        }
        for name, found in model_scores.items()
        if found is not None
        for measure, rows in found.get("passes", {}).items()
    ]


ROUTES = (PageRoute("/pages/calibrations/{calibration_id}/measures", measures),)
