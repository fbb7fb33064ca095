"""``POST /pages/calibrations/{id}/cancel``: what the API's route does, from a button."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.web.csrf import FIELD, require_token
from service.web.form_fields import form_fields
from service.web.handed_on import handed_on
from service.web.page import page
from service.web.page_route import PageRoute


async def cancel(request: Request) -> Response:
    """Ask a calibration to stop."""
    require_token(request, (await form_fields(request)).get(FIELD))
    reference = quote(request.path_params["calibration_id"], safe="@")
    answer = await handed_on(request, f"/calibrations/{reference}/cancel")
    if not answer.is_done:
        return page(request, "problem.html", status=answer.status, problem=answer.body)
    return RedirectResponse("/", status_code=303)


ROUTES = (PageRoute("/pages/calibrations/{calibration_id}/cancel", cancel, method="POST"),)
