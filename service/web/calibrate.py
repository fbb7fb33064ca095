"""``POST /pages/calibrate``: what ``POST /calibrate`` does, from a form."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.web.csrf import FIELD, require_token
from service.web.handed_on import handed_on
from service.web.home import home_page
from service.web.page_route import PageRoute


async def calibrate(request: Request) -> Response:
    """Hand the upload on, and show what became of it.

    The token is in the address: the body may be of any length, and is not read before it is known
    to come from a page of ours.
    """
    require_token(request, request.query_params.get(FIELD))
    answer = await handed_on(request, "/calibrate")
    if answer.is_done:
        return RedirectResponse(f"/?{urlencode({'made': answer.body['id']})}", status_code=303)
    return await home_page(request, status=answer.status, problem=answer.body)


ROUTES = (PageRoute("/pages/calibrate", calibrate, method="POST"),)
