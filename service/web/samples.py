"""``/pages/calibrations/{id}/samples``: labels that may be wrong, and the surest errors."""

import base64
from typing import cast, get_args

from starlette.requests import Request
from starlette.responses import Response

from howsure.report.located import Located
from howsure.report.report import Subject
from service.access.api_keys import PREDICT
from service.errors import InvalidInput, NotFound
from service.reports.error_samples import MOST, Kind
from service.reports.samples import list_samples
from service.web.page import calibration_page
from service.web.page_route import may, subject_of
from service.web.sample_rows import draw_sample, sample_picture, whole_number

MOST_SIDE = 512


def sample_file(request: Request) -> Response:
    """Send the picture of a sample."""
    drawn = draw_sample(*subject_of(request), whole_number("row", request.path_params["row"]))
    png = sample_picture(drawn.sample, most=MOST_SIDE)
    if png is None:
        raise NotFound("This sample is no picture.")
    return Response(png, media_type="image/png")


SHOWN = 24
# The displayed size: the page embeds these pictures, which are all stored in one file.
SIDE = 96
KINDS: dict[Kind, str] = {"mislabelled": "Likely mislabelled", "surest_errors": "Surest errors"}


def samples(request: Request) -> Response:
    """Show the first samples of a list."""
    kind, k = _asked(request)
    listed = list_samples(*subject_of(request), kind=kind, k=k, limit=SHOWN)
    found, about = listed.document, Subject(**listed.document["calibration"])
    return calibration_page(
        request,
        "samples.html",
        "samples",
        about,
        listed=found,
        shown=Located(found),
        kinds=KINDS,
        pictures={row: _address(sample_picture(s, most=SIDE)) for row, s in listed.kept.items()},
        may_predict=may(request, PREDICT),
        most=MOST,
        list_address=f"/calibrations/{about.id}/samples?kind={kind}&k={found['k']}&limit={MOST}",
    )


def _asked(request: Request) -> tuple[Kind, int | None]:
    kind = request.query_params.get("kind", "mislabelled")
    if kind not in get_args(Kind):
        raise InvalidInput.at("kind", f"expected one of {', '.join(get_args(Kind))}")
    k = request.query_params.get("k")
    return cast("Kind", kind), None if k is None else whole_number("k", k)


def _address(png: bytes | None) -> str | None:
    return None if png is None else f"data:image/png;base64,{base64.b64encode(png).decode()}"
