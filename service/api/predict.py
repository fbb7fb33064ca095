"""``POST /predict``: classes with calibrated probabilities."""

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from service.api.dependencies import FrontDep
from service.api.problems import problems
from service.api.timeout_header import TIMEOUT_HEADER
from service.bodies import JSON, MULTIPART, NPY, NPZ, PICTURES, SETS

BINARY = {"type": "string", "format": "binary"}

FORM = {
    "type": "object",
    "description": "Pictures, JPEG, PNG or WebP: each part is a row, in their order, whatever its "
    "name.",
    "additionalProperties": BINARY,
    "minProperties": 1,
}

router = APIRouter(tags=["predict"])


class EncodedTensor(BaseModel):
    """An array as its own bytes, in the place of nested lists."""

    model_config = ConfigDict(extra="forbid")

    b64: str = Field(
        description="The bytes, row-major and little-endian, in standard base64 with padding."
    )
    dtype: str = Field(
        pattern="^(bool|float(16|32|64)|u?int(8|16|32|64))$", description="Of one number."
    )
    shape: list[int] = Field(description="Rows first.")


class PredictBody(BaseModel):
    """What is asked; exactly one of ``inputs``, ``logits`` and ``probabilities``."""

    # What may be left out may not be null: a factory, for it is never called.
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "oneOf": [{"required": [kind]} for kind in ("inputs", "logits", "probabilities")]
        },
    )

    calibration: str = Field(
        description="An id, a name, or `name@version`.", examples=["digits", "digits@1"]
    )
    inputs: list[Any] | EncodedTensor | dict[str, list[Any] | EncodedTensor] = Field(
        default_factory=list,
        description="Rows for the model's single input, or rows by input name.",
        examples=[[[0.0, 1.0, 2.0]]],
    )
    logits: list[list[float]] | EncodedTensor = Field(
        default_factory=list, description="For a calibration of uploaded outputs."
    )
    probabilities: list[list[float]] | EncodedTensor = Field(
        default_factory=list, description="For a calibration of uploaded outputs."
    )
    supplied: dict[str, list[float] | EncodedTensor] = Field(
        default_factory=dict,
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
    responses={
        **problems(400, 404, 406, 408, 409, 413, 415, 422, 429, 504),
        200: {
            "content": {NPZ: {"schema": BINARY}},
            "headers": {
                "Howsure-Calibration": {
                    "description": "With arrays: `id=…; name=…; version=…` of what answered.",
                    "schema": {"type": "string"},
                }
            },
        },
    },
    openapi_extra={
        "parameters": [TIMEOUT_HEADER],
        "requestBody": {
            "required": True,
            "content": {
                JSON: {"schema": {"$ref": "#/components/schemas/PredictBody"}},
                NPY: {"schema": BINARY},
                NPZ: {"schema": BINARY},
                **{kind: {"schema": BINARY} for kind in (*PICTURES, *SETS)},
                MULTIPART: {"schema": FORM},
            },
        },
    },
)
async def post_predict(
    request: Request,
    front: FrontDep,
    calibration: Annotated[  # noqa: ARG001 - the hot path reads it; here it is documented
        str | None,
        Query(
            description="An id, a name, or `name@version`: with .npy, .npz and pictures, and only "
            "there."
        ),
    ] = None,
) -> Response:
    """Answer each row with its class and the probability that it is right, with an interval."""
    return await front.respond(request)


SCHEMAS = {
    "PredictBody": PredictBody.model_json_schema(ref_template="#/components/schemas/{model}")
}
