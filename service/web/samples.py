"""``/pages/calibrations/{id}/samples``: labels that may be wrong, and the surest errors."""

import base64
from typing import Any, cast, get_args

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from service.errors import InvalidInput, NotFound
from service.reports.error_samples import MOST, Kind
from service.reports.located import Located
from service.reports.samples import list_samples
from service.web.page import calibration_page
from service.web.page_route import PageRoute, may_predict, tenant_of, workspace_of
from service.web.sample_rows import draw_sample, row_number, sample_picture

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


SHOWN = 24
# As wide as they are shown: two dozen of them are part of the page, for they lie in one file.
SIDE = 96
KINDS: dict[Kind, str] = {"mislabelled": "Likely mislabelled", "surest_errors": "Surest errors"}
_MOST_DIGITS = 9


async def samples(request: Request) -> Response:
    """Show the first samples of a list."""
    kind, k = _asked(request)
    found, pictures = await run_in_threadpool(_listed, request, kind, k)
    about = found["calibration"]
    return calibration_page(
        request,
        "samples.html",
        "samples",
        about,
        listed=found,
        shown=Located(found),
        kinds=KINDS,
        pictures=pictures,
        may_predict=may_predict(request),
        most=MOST,
        list_address=f"/calibrations/{about['id']}/samples?kind={kind}&k={found['k']}&limit={MOST}",
    )


def _asked(request: Request) -> tuple[Kind, int | None]:
    kind = request.query_params.get("kind", "mislabelled")
    if kind not in get_args(Kind):
        raise InvalidInput.at("kind", f"expected one of {', '.join(get_args(Kind))}")
    k = request.query_params.get("k")
    if k is not None and not (k.isascii() and k.isdigit() and len(k) <= _MOST_DIGITS):
        raise InvalidInput.at("k", "expected the number of an event")
    return cast("Kind", kind), None if k is None else int(k)


def _listed(
    request: Request, kind: Kind, k: int | None
) -> tuple[dict[str, Any], dict[int, str | None]]:
    """Return the list, and by row the address that is its picture: None where it is none."""
    found = list_samples(
        workspace_of(request),
        tenant_of(request),
        request.path_params["calibration_id"],
        kind=kind,
        k=k,
        limit=SHOWN,
    )
    pictures = {row: _address(sample_picture(s, most=SIDE)) for row, s in found.kept.items()}
    return found.document, pictures


def _address(png: bytes | None) -> str | None:
    return None if png is None else f"data:image/png;base64,{base64.b64encode(png).decode()}"


SAMPLES_ROUTES = (PageRoute("/pages/calibrations/{calibration_id}/samples", samples),)
