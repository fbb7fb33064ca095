"""``/pages/calibrations/{id}/try``: predict one sample from a form or from the stored ones."""

import base64
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

import models
from howsure.report.located import Located, value_of
from howsure.report.report import Subject
from service.access.api_keys import PREDICT, READ
from service.bins.export import served_bins
from service.child.magic_bytes import media_type_of
from service.child.requests.media_types import JSON
from service.errors import InvalidInput, NotFound, problem_of
from service.http.problems import status_of
from service.http.services import services_of
from service.http.uploads import PartRule, SpooledUpload, spool_multipart
from service.web.api_calls import Answer, Sent, handed_on
from service.web.page import calibration_page, tab_address
from service.web.page_route import (
    may,
    origin_of,
    subject_of,
    tenant_of,
    workspace_of,
)
from service.web.sample_rows import (
    DrawnSample,
    TakenSample,
    any_row,
    draw_sample,
    ready_calibration,
    sample_picture,
    whole_number,
)

# The guard bounds the whole form by the same.
PARTS = {
    "file": PartRule(8 * 1024**2, repeatable=False, is_file=True),
    "numbers": PartRule(1024**2, repeatable=False, is_file=False),
}


def sent_by(form: SpooledUpload, taken: TakenSample, calibration: str) -> Sent:
    """Return the request for a prediction by a calibration, which is given by its id.

    Raises
    ------
    InvalidInput
        If there is no sample in the form.
    """
    file, numbers = next(iter(form.files("file")), None), form.text("numbers") or ""
    if file is not None:
        return _of_file(file.path.read_bytes(), file.label, taken, calibration)
    if numbers.strip():
        return Sent(JSON, taken.json_body(calibration, numbers))
    raise InvalidInput.at("file", "expected a file, or numbers beside it")


def _of_file(content: bytes, name: str, taken: TakenSample, calibration: str) -> Sent:
    """Return a request with the file unchanged, or with the numbers of a JSON file."""
    media_type = media_type_of(content)
    if media_type is not None:
        return Sent(media_type, content)
    if name.lower().endswith(".json"):
        try:
            return Sent(JSON, taken.json_body(calibration, content.decode()))
        except UnicodeDecodeError as error:
            raise InvalidInput.at("file", "expected JSON in UTF-8") from error
    expected = "a picture (JPEG, PNG or WebP), " if taken.has_pictures else ""
    raise InvalidInput.at("file", f"expected {expected}.npy, .npz or .json")


SIDE = 224
MOST_SHOWN = 20_000
MOST_COLUMNS = 30  # that are named beside the form
_TOP = "top"


def shown_answer(
    answer: dict[str, Any],
    bins: dict[str, Any] | None,
    sent: Sent | None,
    drawn: DrawnSample | None,
) -> dict[str, Any]:
    """Return the context of the template for the first row of an answer of ``POST /predict``.

    Pointers into the answer begin with ``/answer``, those into the report with ``/report``.
    """
    first, at = answer["predictions"][0], Located(answer, "/answer")["predictions"][0]
    picture = None if drawn is None else sample_picture(drawn.sample, most=SIDE)
    return {
        "first": first,
        "classes": at["classes"] if "classes" in first else [],
        "rows": len(answer["predictions"]),
        "unproven": answer.get("unproven", ()),
        "events": [_event(name, at[name], bins) for name in first if name.startswith(_TOP)],
        "drawn": drawn,
        "picture": None if picture is None else base64.b64encode(picture).decode(),
        "json": json.dumps(answer, indent=2, ensure_ascii=False),
        "request": _request(sent),
        "media_type": None if sent is None else sent.content_type,
    }


def _event(name: str, at: Located, bins: dict[str, Any] | None) -> dict[str, Any]:
    """Return an event of the answer with its bin in the report."""
    k, measure = name.removeprefix(_TOP), at["measure"]
    table = Located(bins, "/report")["events"][k]["measures"][measure]
    found = None if bins is None else table["bins"][value_of(at["bin"])]
    return {"k": int(k), "at": at, "measure": measure, "lookup": table["lookup"], "bin": found}


def _request(sent: Sent | None) -> str | None:
    """Return a short JSON request as text; None for files and long requests."""
    if sent is None or sent.content_type != JSON or len(sent.body) > MOST_SHOWN:
        return None
    return sent.body.decode()


@dataclass(frozen=True)
class _Tried:
    """An answer, its request and the stored sample that it is about."""

    answer: Answer
    sent: Sent | None = None
    drawn: DrawnSample | None = None


async def show(request: Request) -> Response:
    """Show the form, and the answer for the stored sample that the address names."""
    row = await run_in_threadpool(ready_calibration, *subject_of(request))
    query = request.query_params
    if "draw" not in query and "row" not in query:
        return await _page(request, row, None)
    try:
        stored = workspace_of(request), tenant_of(request), str(row.id)
        if "draw" in query:
            number = await run_in_threadpool(any_row, *stored)
            address = tab_address(str(row.id), "try")
            return RedirectResponse(f"{address}?row={number}", status_code=303)
        drawn = await run_in_threadpool(draw_sample, *stored, whole_number("row", query["row"]))
    except (InvalidInput, NotFound) as error:
        return await _page(request, row, _refused(error))
    sent = Sent(drawn.media_type, drawn.body)
    return await _page(request, row, _Tried(await _asked(request, row, sent), sent, drawn))


async def send(request: Request) -> Response:
    """Predict the sample of the form."""
    row = await run_in_threadpool(ready_calibration, *subject_of(request))
    written = ""
    try:
        form = await spool_multipart(
            request.headers.get("content-type", ""),
            request.stream(),
            folder=workspace_of(request).spool.path,
            limits=services_of(request.scope).upload_limits,
            parts=PARTS,
        )
        try:
            written = form.text("numbers") or ""
            sent = await run_in_threadpool(sent_by, form, TakenSample.by(row), str(row.id))
        finally:
            await run_in_threadpool(form.discard)
    except InvalidInput as error:
        return await _page(request, row, _refused(error), written)
    return await _page(request, row, _Tried(await _asked(request, row, sent), sent), written)


async def _asked(request: Request, row: models.Calibration, sent: Sent) -> Answer:
    # JSON names the calibration itself.
    query = "" if sent.content_type == JSON else urlencode({"calibration": str(row.id)})
    return await handed_on(request, "/predict", sent=sent, query=query)


def _refused(error: InvalidInput | NotFound) -> _Tried:
    return _Tried(Answer(status_of(error), problem_of(error)))


async def _page(
    request: Request, row: models.Calibration, tried: _Tried | None, written: str = ""
) -> Response:
    about = Subject(id=str(row.id), name=row.name, version=row.version)
    context: dict[str, Any] = {"answered": None, "problem": None}
    if tried is not None and tried.answer.is_done:
        bins = None
        if may(request, READ):
            asked = workspace_of(request), tenant_of(request), row.id
            bins = await run_in_threadpool(served_bins, *asked)
        context["answered"] = shown_answer(tried.answer.body, bins, tried.sent, tried.drawn)
    elif tried is not None:
        context["problem"] = tried.answer.body
    return await run_in_threadpool(
        calibration_page,
        request,
        "try.html",
        "try",
        about,
        status=200 if tried is None else tried.answer.status,
        taken=TakenSample.by(row),
        most_columns=MOST_COLUMNS,
        may_predict=may(request, PREDICT),
        may_read=may(request, READ),
        written=written,
        origin=origin_of(request),
        **context,
    )
