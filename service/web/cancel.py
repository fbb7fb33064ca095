"""``POST /pages/calibrations/{id}/cancel``, and of a further set: what the API's routes do."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.web.csrf import FIELD, require_token
from service.web.form_fields import form_fields
from service.web.handed_on import handed_on
from service.web.page import page
from service.web.page_route import PageRoute


async def cancel(request: Request) -> Response:
    """Ask a calibration, or the evaluation of a further set, to stop."""
    require_token(request, (await form_fields(request)).get(FIELD))
    subject = quote(request.path_params["calibration_id"], safe="@")
    if (evaluation := request.path_params.get("evaluation_name")) is not None:
        subject = f"{subject}/evaluations/{quote(evaluation)}"
    answer = await handed_on(request, f"/calibrations/{subject}/cancel")
    if not answer.is_done:
        return page(request, "problem.html", status=answer.status, problem=answer.body)
    return RedirectResponse("/", status_code=303)


_OF = "/pages/calibrations/{calibration_id}"
ROUTES = (
    PageRoute(f"{_OF}/cancel", cancel, method="POST"),
    PageRoute(f"{_OF}/evaluations/{{evaluation_name:path}}/cancel", cancel, method="POST"),
)
