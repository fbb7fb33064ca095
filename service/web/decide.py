"""Forms that put an operating point in force, and that put none in force."""

import json
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.web.calibration_page import tab_address
from service.web.chosen import Chosen
from service.web.csrf import FIELD, require_token
from service.web.form_fields import form_fields
from service.web.handed_on import Sent, handed_on
from service.web.operating_point import operating_point_page
from service.web.page_route import PageRoute

# A reason of 2000 characters, each of them twelve bytes in a form.
MOST_BYTES = 32 * 1024


async def save(request: Request) -> Response:
    """Put what was chosen in force."""
    fields = await form_fields(request, most_bytes=MOST_BYTES)
    require_token(request, fields.get(FIELD))
    chosen = Chosen.of(fields)
    named = {name: fields.get(name, "") for name in ("name", "author", "reason")}
    asked = ({} if chosen is None else chosen.choice()) | named
    return await _decided(request, "", asked, chosen, fields)


async def withdraw(request: Request) -> Response:
    """Put none in force."""
    fields = await form_fields(request, most_bytes=MOST_BYTES)
    require_token(request, fields.get(FIELD))
    asked = {name: fields.get(name, "") for name in ("author", "reason")}
    return await _decided(request, "/withdraw", asked, None, fields)


async def _decided(
    request: Request,
    what: str,
    asked: Mapping[str, str],
    chosen: Chosen | None,
    given: Mapping[str, str],
) -> Response:
    """Have the API decide, and show what is in force then; or the form again, and what is wrong."""
    reference = quote(request.path_params["calibration_id"], safe="@")
    address = f"/calibrations/{reference}/operating-points{what}"
    sent = Sent("application/json", json.dumps(asked).encode())
    answer = await handed_on(request, address, sent=sent)
    if not answer.is_done:
        return await operating_point_page(request, chosen, refused=answer, given=given)
    query = "" if chosen is None else f"?{urlencode(chosen.fields())}"
    return RedirectResponse(f"{tab_address(reference, 'operating-point')}{query}", status_code=303)


_PAGE = "/pages/calibrations/{calibration_id}/operating-points"
ROUTES = (
    PageRoute(_PAGE, save, method="POST"),
    PageRoute(f"{_PAGE}/withdraw", withdraw, method="POST"),
)
