"""``POST /predict``: classes with calibrated probabilities."""

import uuid
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from service.api.body import read_body
from service.api.dependencies import LanesDep, TenantDep, WorkspaceDep
from service.api.problems import problems
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
    supplied: dict[str, list[float]] | None = Field(
        None,
        description="Uncertainties of your own, by name, one a row: where one answers an event.",
    )


class CalibrationName(BaseModel):
    """Which calibration answered."""

    id: uuid.UUID = Field(description="Of this version.")
    name: str = Field(description="Its name.")
    version: int = Field(description="The version that the reference meant.")


class ScoredClass(BaseModel):
    """One class with the model's own softmax score, which is not calibrated."""

    class_: int = Field(alias="class", examples=[3], description="Its index.")
    label: str = Field(examples=["3"], description="Its name.")
    score: float = Field(examples=[0.93], description="The model's own softmax.")


class EventProbability(BaseModel):
    """The calibrated probability that the label is among the k most probable classes."""

    probability: float = Field(examples=[0.987], description="That the event holds, calibrated.")
    interval: tuple[float, float] = Field(
        examples=[(0.971, 0.995)], description="Of the probability, at the configured level."
    )
    measure: str = Field(examples=["neg_log_pmax"], description="What the bins are of.")
    uncertainty: float = Field(examples=[0.072], description="Its value for this row.")
    bin: int = Field(examples=[4], description="Where that lies; 0 is the most certain bin.")


class Prediction(BaseModel):
    """The answer for one row; one ``top{k}`` for each event that was calibrated."""

    model_config = ConfigDict(
        json_schema_extra={
            "patternProperties": {
                r"^top[1-9]\d*$": {"$ref": "#/components/schemas/EventProbability"}
            }
        }
    )

    class_: int = Field(alias="class", examples=[3], description="The most probable class.")
    label: str = Field(examples=["3"], description="Its name.")
    classes: list[ScoredClass] = Field(description="Five at most, most probable first.")
    top1: EventProbability | None = Field(
        None, description="That `class` is right; absent where Top-1 is no event."
    )
    top5: EventProbability | None = Field(
        None, description="That the label is among five; absent where Top-5 is no event."
    )
    out_of_distribution: bool | None = Field(
        description="Whether the row is less certain than nearly all of the calibration set."
    )
    abstain: dict[str, bool | None] = Field(
        description="By `max_risk`: whether to leave the row to somebody else; null where no "
        "threshold keeps to that risk."
    )


class PredictAnswer(BaseModel):
    """One prediction a row, in the order they were sent."""

    calibration: CalibrationName = Field(description="Which calibration answered.")
    predictions: list[Prediction] = Field(description="One a row, in the order sent.")


@router.post(
    "/predict",
    summary="Predict, with calibrated probabilities",
    response_model=PredictAnswer,
    responses=problems(400, 404, 409, 413, 415, 422, 504),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/PredictBody"}}},
        }
    },
)
async def post_predict(
    request: Request, workspace: WorkspaceDep, tenant_id: TenantDep, lanes: LanesDep
) -> Response:
    """Answer each row with its class and the probability that it is right, with an interval."""
    media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type != JSON:
        raise UnsupportedFormat.at("Content-Type", f"expected {JSON}, got {media_type!r}")
    body = await read_body(request, max_bytes=workspace.limits.max_predict_bytes)
    answer = await lanes.predict.run(_answer, workspace, tenant_id, body)
    return Response(answer, media_type=JSON)


def _answer(workspace: Workspace, tenant_id: uuid.UUID, body: bytes) -> bytes:
    batch = predict(workspace, tenant_id, parse_predict_request(body))
    return msgspec.json.encode(render_predictions(batch))


SCHEMAS = {"PredictBody": PredictBody.model_json_schema()}
