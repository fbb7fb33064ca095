"""``/pages/calibrations/{id}/try``: one sample, sent or drawn, and what is said of it."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

import models
from service.bodies import JSON
from service.errors import InvalidInput, MalformedRequest, NotFound
from service.operations.draw_sample import DrawnSample, any_row, draw_sample
from service.operations.problem import problem_of
from service.operations.served_bins import served_bins
from service.operations.taken_sample import TakenSample, ready_calibration
from service.web.asker import may_predict, may_read, tenant_of, workspace_of
from service.web.calibration_page import calibration_page, tab_address
from service.web.csrf import FIELD, require_token
from service.web.handed_on import Answer, Sent, handed_on
from service.web.page_route import PageRoute
from service.web.row_number import row_number
from service.web.try_answer import shown_answer
from service.web.try_form import read_form, sent_by

_STATUS = {MalformedRequest: 400, NotFound: 404, InvalidInput: 422}


@dataclass(frozen=True)
class _Tried:
    """What was asked and answered, and which kept sample it was."""

    answer: Answer
    sent: Sent | None = None
    drawn: DrawnSample | None = None


async def show(request: Request) -> Response:
    """Ask for a sample; of a kept one that the address names show the answer."""
    row = await run_in_threadpool(_calibration, request)
    query = request.query_params
    if "draw" not in query and "row" not in query:
        return await _page(request, row, None)
    try:
        asked = workspace_of(request), tenant_of(request), str(row.id)
        if "draw" in query:
            number = await run_in_threadpool(any_row, *asked)
            address = tab_address(str(row.id), "try")
            return RedirectResponse(f"{address}?row={number}", status_code=303)
        drawn = await run_in_threadpool(draw_sample, *asked, row_number(query["row"]))
    except (InvalidInput, NotFound) as error:
        return await _page(request, row, _refused(error))
    sent = Sent(drawn.media_type, drawn.body)
    return await _page(request, row, _Tried(await _asked(request, row, sent), sent, drawn))


async def send(request: Request) -> Response:
    """Answer the sample of the form, whose token is in the address."""
    require_token(request, request.query_params.get(FIELD))
    row = await run_in_threadpool(_calibration, request)
    written = ""
    try:
        form = await read_form(request)
        written = form.numbers
        sent = sent_by(form, TakenSample.by(row), str(row.id))
    except InvalidInput as error:
        return await _page(request, row, _refused(error), written)
    return await _page(request, row, _Tried(await _asked(request, row, sent), sent), written)


def _calibration(request: Request) -> models.Calibration:
    reference = request.path_params["calibration_id"]
    return ready_calibration(workspace_of(request), tenant_of(request), reference)


async def _asked(request: Request, row: models.Calibration, sent: Sent) -> Answer:
    # JSON names the calibration itself.
    query = "" if sent.content_type == JSON else urlencode({"calibration": str(row.id)})
    return await handed_on(request, "/predict", sent=sent, query=query)


def _refused(error: InvalidInput | NotFound) -> _Tried:
    status = next(code for kind, code in _STATUS.items() if isinstance(error, kind))
    return _Tried(Answer(status, problem_of(error)))


async def _page(
    request: Request, row: models.Calibration, tried: _Tried | None, written: str = ""
) -> Response:
    about = {"id": str(row.id), "name": row.name, "version": row.version}
    context: dict[str, Any] = {"answered": None, "problem": None}
    if tried is not None and tried.answer.is_done:
        bins = None
        if may_read(request):
            asked = workspace_of(request), tenant_of(request), row.id
            bins = await run_in_threadpool(served_bins, *asked)
        context["answered"] = shown_answer(tried.answer.body, bins, tried.sent, tried.drawn)
    elif tried is not None:
        context["problem"] = tried.answer.body
    return calibration_page(
        request,
        "try.html",
        "try",
        about,
        status=200 if tried is None else tried.answer.status,
        taken=TakenSample.by(row),
        may_predict=may_predict(request),
        may_read=may_read(request),
        written=written,
        origin=f"{request.url.scheme}://{request.url.netloc}",
        **context,
    )


ROUTES = (
    PageRoute("/pages/calibrations/{calibration_id}/try", show),
    PageRoute("/pages/calibrations/{calibration_id}/try", send, method="POST"),
)
