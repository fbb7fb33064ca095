"""``/pages/jobs``: the part of the home page that is renewed while jobs are under way."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from service.operations.overview import jobs_under_way
from service.web.asker import may_write, tenant_of, workspace_of
from service.web.page import page
from service.web.page_route import PageRoute


async def jobs(request: Request) -> Response:
    """Show the jobs; when the last one has ended, have the page loaded anew."""
    found = await run_in_threadpool(jobs_under_way, workspace_of(request), tenant_of(request))
    response = page(request, "jobs.html", whole=False, jobs=found, may_write=may_write(request))
    if not found:
        response.headers["HX-Refresh"] = "true"
    return response


ROUTES = (PageRoute("/pages/jobs", jobs),)
