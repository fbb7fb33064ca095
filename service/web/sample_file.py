"""``/pages/calibrations/{id}/samples/{row}.png``: a kept sample as a picture."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from service.errors import NotFound
from service.operations.draw_sample import draw_sample
from service.operations.sample_picture import sample_picture
from service.web.asker import tenant_of, workspace_of
from service.web.page_route import PageRoute
from service.web.row_number import row_number

MOST_SIDE = 512


async def sample_file(request: Request) -> Response:
    """Send it; what is kept never changes."""
    named = request.path_params
    png = await run_in_threadpool(_picture, request, named["calibration_id"], named["row"])
    return Response(png, media_type="image/png")


def _picture(request: Request, reference: str, row: str) -> bytes:
    drawn = draw_sample(workspace_of(request), tenant_of(request), reference, row_number(row))
    png = sample_picture(drawn.sample, most=MOST_SIDE)
    if png is None:
        raise NotFound("This sample is no picture.")
    return png


ROUTES = (PageRoute("/pages/calibrations/{calibration_id}/samples/{row}.png", sample_file),)
