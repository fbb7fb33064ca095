"""Forms that change something: each calls the API route of the same purpose."""

import json
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Literal
from urllib.parse import quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.calibrations.manage import get_calibration
from service.errors import InvalidInput, problem_of
from service.http.bodies import form_fields
from service.reports.fitness import fitness_of
from service.web.api_calls import Answer, Sent, handed_on
from service.web.home import home_page
from service.web.operating_point.choice import Chosen
from service.web.operating_point.page import operating_point_page
from service.web.page import page, tab_address
from service.web.page_route import documents_of, subject_of, tenant_of, workspace_of


async def calibrate(request: Request) -> Response:
    """Pass the upload to ``POST /calibrate`` and show the result."""
    answer = await handed_on(request, "/calibrate")
    if answer.is_done:
        return RedirectResponse(f"/?{urlencode({'made': answer.body['id']})}", status_code=303)
    return await run_in_threadpool(home_page, request, status=answer.status, problem=answer.body)


async def delete(request: Request) -> Response:
    """Delete a calibration that has ended."""
    return await _changed(request, _address(request), method="DELETE")


async def cancel(request: Request) -> Response:
    """Cancel a calibration, or the evaluation of a further set."""
    subject = _address(request)
    if (evaluation := request.path_params.get("evaluation_name")) is not None:
        subject = f"{subject}/evaluations/{quote(evaluation)}"
    return await _changed(request, f"{subject}/cancel")


def _address(request: Request) -> str:
    """Return the address of the calibration in the API."""
    return f"/calibrations/{quote(request.path_params['calibration_id'], safe='@')}"


async def _changed(
    request: Request, address: str, *, method: Literal["POST", "DELETE"] = "POST"
) -> Response:
    """Call the API; show the home page, or the problem."""
    answer = await handed_on(request, address, method=method)
    if not answer.is_done:
        return page(request, "problem.html", status=answer.status, problem=answer.body)
    return RedirectResponse("/", status_code=303)


# A reason of 2000 characters, each of them twelve bytes in a form.
MOST_BYTES = 32 * 1024


async def save(request: Request) -> Response:
    """Activate the chosen operating point."""
    fields = await form_fields(request, most_bytes=MOST_BYTES)
    chosen = Chosen.of(fields)
    refused = await run_in_threadpool(_unread_warning, request, fields)
    if refused is not None:
        return await _shown_again(request, refused, chosen, fields)
    named = {name: fields.get(name, "") for name in ("name", "author", "reason")}
    asked = ({} if chosen is None else chosen.choice()) | named
    return await _decided(request, "", asked, chosen, fields)


async def withdraw(request: Request) -> Response:
    """Withdraw the active operating point."""
    fields = await form_fields(request, most_bytes=MOST_BYTES)
    asked = {name: fields.get(name, "") for name in ("author", "reason")}
    return await _decided(request, "/withdraw", asked, None, fields)


async def _decided(
    request: Request,
    what: str,
    asked: Mapping[str, str],
    chosen: Chosen | None,
    given: Mapping[str, str],
) -> Response:
    """Call the API; show the new operating point, or the form again with the problem."""
    sent = Sent("application/json", json.dumps(asked).encode())
    answer = await handed_on(request, f"{_address(request)}/operating-points{what}", sent=sent)
    if not answer.is_done:
        return await _shown_again(request, answer, chosen, given)
    query = "" if chosen is None else f"?{urlencode(chosen.fields())}"
    reference = quote(request.path_params["calibration_id"], safe="@")
    return RedirectResponse(f"{tab_address(reference, 'operating-point')}{query}", status_code=303)


async def _shown_again(
    request: Request, refused: Answer, chosen: Chosen | None, given: Mapping[str, str]
) -> Response:
    page_again = partial(operating_point_page, request, chosen, refused=refused, given=given)
    return await documents_of(request).run(tenant_of(request), page_again)


def _unread_warning(request: Request, given: Mapping[str, str]) -> Answer | None:
    """Return a refusal if the calibration should not be used and the form does not confirm it."""
    if given.get("despite"):
        return None
    row = get_calibration(*subject_of(request))
    found = fitness_of(workspace_of(request), row.tenant_id, [row.id]).get(row.id)
    if found is None or not found.is_refused:
        return None
    error = InvalidInput.at("despite", f"confirm that you have read the warning. {found.headline}")
    return Answer(HTTPStatus.UNPROCESSABLE_ENTITY, problem_of(error))
