"""``/pages/calibrations/{id}/samples``: labels that may be wrong, and the surest errors."""

import base64
from typing import cast, get_args

from starlette.requests import Request
from starlette.responses import Response

from service.errors import InvalidInput, NotFound
from service.reports.error_samples import MOST, Kind
from service.reports.located import Located
from service.reports.samples import list_samples
from service.web.page import calibration_page
from service.web.page_route import may_predict, subject_of
from service.web.sample_rows import draw_sample, row_number, sample_picture

MOST_SIDE = 512


def sample_file(request: Request) -> Response:
    """Send the picture of a sample."""
    drawn = draw_sample(*subject_of(request), row_number(request.path_params["row"]))
    png = sample_picture(drawn.sample, most=MOST_SIDE)
    if png is None:
        raise NotFound("This sample is no picture.")
    return Response(png, media_type="image/png")


SHOWN = 24
# The displayed size: the page embeds these pictures, which are all stored in one file.
SIDE = 96
KINDS: dict[Kind, str] = {"mislabelled": "Likely mislabelled", "surest_errors": "Surest errors"}
_MOST_DIGITS = 9


def samples(request: Request) -> Response:
    """Show the first samples of a list."""
    kind, k = _asked(request)
    listed = list_samples(*subject_of(request), kind=kind, k=k, limit=SHOWN)
    found, about = listed.document, listed.document["calibration"]
    return calibration_page(
        request,
        "samples.html",
        "samples",
        about,
        listed=found,
        shown=Located(found),
        kinds=KINDS,
        pictures={row: _address(sample_picture(s, most=SIDE)) for row, s in listed.kept.items()},
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


def _address(png: bytes | None) -> str | None:
    return None if png is None else f"data:image/png;base64,{base64.b64encode(png).decode()}"
