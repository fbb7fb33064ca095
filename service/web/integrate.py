"""How a program asks a calibration: snippets that run as they stand, with its names and shapes."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from service.reports.located import Located
from service.web.integration import describe_integration
from service.web.page import calibration_page
from service.web.page_route import PageRoute, needs_key, tenant_of, workspace_of
from service.web.snippets import KEY, SnippetContext, snippets_of


async def integrate(request: Request) -> Response:
    """Show them."""
    found = await run_in_threadpool(
        describe_integration,
        workspace_of(request),
        tenant_of(request),
        request.path_params["calibration_id"],
    )
    context = SnippetContext(
        found, origin=f"{request.url.scheme}://{request.url.netloc}", keyed=needs_key(request)
    )
    return calibration_page(
        request,
        "integrate.html",
        "integrate",
        {"id": found.id, "name": found.name, "version": found.version},
        found=found,
        shown=Located(found.onnx_model, "/provenance/model"),
        snippets=snippets_of(context),
        key=KEY if context.keyed else None,
    )


ROUTES = (PageRoute("/pages/calibrations/{calibration_id}/integrate", integrate),)
