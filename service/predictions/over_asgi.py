"""Predictions as ordinary routes, for pages and for other ASGI servers."""

import asyncio

from fastapi import Request, Response
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from service.access.api_keys import Caller
from service.access.authenticator import require_scope
from service.http.bodies import read_body
from service.http.job_watch import client_leaves
from service.http.prediction_exchange import RequestHead
from service.predictions.prediction_app import (
    SCOPE,
    PredictionApp,
    answer_headers,
    check_encoding,
    prediction_options,
)
from service.predictions.prediction_request import PredictionAnswer, PredictionRequest


class _AwaitedPrediction(PredictionRequest, eq=False, kw_only=True):
    answered: "asyncio.Future[PredictionAnswer]"

    def done(self, answer: PredictionAnswer) -> None:
        if not self.answered.done():
            self.answered.set_result(answer)

    def failed(self, error: Exception) -> None:
        if not self.answered.done():
            self.answered.set_exception(error)


async def answer_prediction(request: Request, app: PredictionApp, caller: Caller) -> Response:
    """Answer a prediction that the router received from an authenticated caller."""
    loop = asyncio.get_running_loop()
    arrived = loop.time()
    scope, predicting = request.scope, app.predicting
    headers = [(name.lower(), value) for name, value in scope["headers"]]
    head = RequestHead(
        scope["route"].path, request.path_params, scope.get("query_string", b""), headers
    )
    # Public pages call this route as well.
    require_scope(caller, SCOPE)
    check_encoding(head)
    options = prediction_options(head, app.timeout_seconds)
    prediction = _AwaitedPrediction(
        asker=predicting,
        tenant_id=caller.tenant_id,
        body=await read_body(request, max_bytes=app.max_body_bytes),
        arrived=arrived,
        options=options,
        timeout=options.timeout,
        rows=caller.meter.rows,
        holder=caller.meter.holder,
        answered=loop.create_future(),
    )
    predicting.begin(prediction)
    try:
        answer = await _unless_client_leaves(prediction.answered, request.receive)
    finally:
        if not prediction.is_settled:
            prediction.drop()
    response = Response(answer.body)
    response.raw_headers += answer_headers(answer, options)
    return response


async def _unless_client_leaves(
    answered: "asyncio.Future[PredictionAnswer]", receive: Receive
) -> PredictionAnswer:
    if not answered.done():
        left = asyncio.ensure_future(client_leaves(receive))
        try:
            await asyncio.wait((answered, left), return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
        if not answered.done():
            left.result()
            raise ClientDisconnect
    return answered.result()
