"""``/``: what there is, what is under way, and a form to upload more."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from service.calibrations.findings import with_docs
from service.calibrations.manage import get_calibration, jobs_under_way, overview
from service.errors import NotFound
from service.web.page import page
from service.web.page_route import PageRoute, charts_of, may_write, tenant_of, workspace_of


async def home(request: Request) -> Response:
    """Show it."""
    return await home_page(request)


async def home_page(
    request: Request, *, status: int = 200, problem: dict[str, Any] | None = None
) -> Response:
    """Render the page, with what was wrong with an upload if one was sent."""
    found = await run_in_threadpool(overview, workspace_of(request), tenant_of(request))
    await run_in_threadpool(charts_of(request).warm)  # a report is often what is looked at next
    return page(
        request,
        "home.html",
        status=status,
        found=found,
        jobs=found.jobs,
        made=await run_in_threadpool(_made, request),
        may_write=may_write(request),
        problem=problem,
        origin=f"{request.url.scheme}://{request.url.netloc}",
    )


def _made(request: Request) -> dict[str, Any] | None:
    """Return the calibration that was just uploaded, if the address names one."""
    reference = request.query_params.get("made")
    if reference is None:
        return None
    try:
        row = get_calibration(workspace_of(request), tenant_of(request), reference)
    except NotFound:
        return None
    findings = [with_docs(finding) for finding in row.findings]
    named = {"id": str(row.id), "name": row.name, "version": row.version, "status": row.status}
    return named | {"findings": findings, "warnings": row.warnings, "error": row.error}


ROUTES = (PageRoute("/", home),)


async def jobs(request: Request) -> Response:
    """Show the jobs; when the last one has ended, have the page loaded anew."""
    found = await run_in_threadpool(jobs_under_way, workspace_of(request), tenant_of(request))
    response = page(request, "jobs.html", whole=False, jobs=found, may_write=may_write(request))
    if not found:
        response.headers["HX-Refresh"] = "true"
    return response


JOBS_ROUTES = (PageRoute("/pages/jobs", jobs),)
