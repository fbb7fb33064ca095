"""``POST /predict``: classes with calibrated probabilities."""

import uuid
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from service.api.body import read_body
from service.api.dependencies import TenantDep, WorkspaceDep
from service.api.problems import PREDICT_PROBLEMS
from service.errors import UnsupportedFormat
from service.operations.predict import predict
from service.operations.predict_request import parse_predict_request
from service.operations.predictions import render_predictions
from service.operations.workspace import Workspace

JSON = "application/json"

router = APIRouter(tags=["predict"])


class PredictBody(BaseModel):
    """What is asked; exactly one of ``inputs``, ``logits`` and ``probabilities``."""

    calibration: str = Field(
        description="An id, a name, or `name@version`.", examples=["digits", "digits@1"]
    )
    inputs: list[Any] | dict[str, list[Any]] | None = Field(
        None,
        description="Rows for the model's single input, or rows by input name.",
        examples=[[[0.0, 1.0, 2.0]]],
    )
    logits: list[list[float]] | None = Field(
        None, description="For a calibration of uploaded outputs."
    )
    probabilities: list[list[float]] | None = Field(
        None, description="For a calibration of uploaded outputs."
    )


class CalibrationName(BaseModel):
    """Which calibration answered."""

    id: uuid.UUID
    name: str
    version: int


class ScoredClass(BaseModel):
    """One class with the model's own softmax score, which is not calibrated."""

    class_: int = Field(alias="class", examples=[3])
    label: str = Field(examples=["3"])
    score: float = Field(examples=[0.93])


class EventProbability(BaseModel):
    """The calibrated probability that the label is among the k most probable classes."""

    probability: float = Field(examples=[0.987])
    interval: tuple[float, float] = Field(examples=[(0.971, 0.995)])
    measure: str = Field(examples=["neg_log_pmax"])
    uncertainty: float = Field(examples=[0.072])
    bin: int = Field(examples=[4])


class Prediction(BaseModel):
    """The answer for one row; one ``top{k}`` for each event that was calibrated."""

    class_: int = Field(alias="class", examples=[3])
    label: str = Field(examples=["3"])
    classes: list[ScoredClass] = Field(description="Five at most, most probable first.")
    top1: EventProbability
    top5: EventProbability | None = None


class PredictAnswer(BaseModel):
    """One prediction a row, in the order they were sent."""

    calibration: CalibrationName
    predictions: list[Prediction]


@router.post(
    "/predict",
    summary="Predict, with calibrated probabilities",
    response_model=PredictAnswer,
    responses=PREDICT_PROBLEMS,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/PredictBody"}}},
        }
    },
)
async def post_predict(request: Request, workspace: WorkspaceDep, tenant_id: TenantDep) -> Response:
    """Answer each row with its class and the probability that it is right, with an interval."""
    media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type != JSON:
        raise UnsupportedFormat.at("Content-Type", f"expected {JSON}, got {media_type!r}")
    body = await read_body(request, max_bytes=workspace.limits.max_predict_bytes)
    answer = await run_in_threadpool(_answer, workspace, tenant_id, body)
    return Response(answer, media_type=JSON)


def _answer(workspace: Workspace, tenant_id: uuid.UUID, body: bytes) -> bytes:
    batch = predict(workspace, tenant_id, parse_predict_request(body))
    return msgspec.json.encode(render_predictions(batch))


SCHEMAS = {"PredictBody": PredictBody.model_json_schema()}
