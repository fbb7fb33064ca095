"""One figure as a file: SVG to keep, or its spec with its data, to be drawn by a browser."""

import uuid
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service.errors import NotFound, Overloaded
from service.operations.report import collect_report
from service.operations.workspace import Workspace
from service.web.asker import charts_of, tenant_of, workspace_of
from service.web.charts import Figure, figures_of
from service.web.charts.filled_spec import filled_spec
from service.web.charts.palette import Theme, painted
from service.web.page_route import PageRoute


async def chart_file(request: Request) -> Response:
    """Send a figure; ``theme=dark`` for dark grounds."""
    named = request.path_params
    key, _, form = named["key"].rpartition(".")
    figure = await run_in_threadpool(
        _figure,
        workspace_of(request),
        tenant_of(request),
        named["calibration_id"],
        (named["chart"], key),
    )
    if figure is None or form not in {"svg", "json"}:
        raise NotFound("This report has no such figure.")
    theme: Theme = "dark" if request.query_params.get("theme") == "dark" else "light"
    if form == "json":
        return JSONResponse(filled_spec(figure))
    (picture,) = await run_in_threadpool(charts_of(request).draw, [figure])
    if picture is None:
        raise Overloaded("The figure could not be drawn; try again.")
    name = f"{figure.chart}-{figure.key}.svg"
    return Response(
        painted(picture, theme),
        media_type="image/svg+xml",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _figure(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, wanted: tuple[str, str]
) -> Figure | None:
    report: dict[str, Any] = collect_report(workspace, tenant_id, reference)
    return next((f for f in figures_of(report) if (f.chart, f.key) == wanted), None)


ROUTES = (PageRoute("/pages/calibrations/{calibration_id}/charts/{chart}/{key}", chart_file),)
