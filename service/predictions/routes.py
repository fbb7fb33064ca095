"""Routes of predictions and of the models in memory."""

import uuid
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from service.child.requests.media_types import JSON, MULTIPART, NPY, NPZ, PICTURES, SETS
from service.errors import problem_of
from service.http.dependencies import CallerDep, ServicesDep
from service.http.problems import problems
from service.predictions.over_asgi import answer_prediction
from service.runner.model_to_serve import ServedModelState

TIMEOUT_HEADER: dict[str, Any] = {
    "name": "Timeout",
    "in": "header",
    "required": False,
    "description": "Seconds from the request's arrival to its deadline; then the response is "
    "504. At most `HOWSURE_PREDICT_TIMEOUT_SECONDS`.",
    "schema": {"type": "number", "exclusiveMinimum": 0},
    "example": 0.5,
}


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
    """An array as base64 bytes, instead of nested lists."""

    model_config = ConfigDict(extra="forbid")

    b64: str = Field(
        description="The bytes, row-major and little-endian, in standard base64 with padding."
    )
    dtype: str = Field(
        pattern="^(bool|float(16|32|64)|u?int(8|16|32|64))$", description="Type of the numbers."
    )
    shape: list[int] = Field(description="Rows first.")


KINDS = ("inputs", "logits", "probabilities", "scores")


class PredictBody(BaseModel):
    """A request with exactly one of ``inputs``, ``logits``, ``probabilities`` and ``scores``."""

    # Optional fields may not be null, hence a factory, which is never called.
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"oneOf": [{"required": [kind]} for kind in KINDS]},
    )

    calibration: str = Field(
        description="An id, a name, or `name@version`. In a body of more than 1 MiB it must be the "
        "first or the last field.",
        examples=["digits", "digits@1"],
    )
    inputs: list[Any] | EncodedTensor | dict[str, list[Any] | EncodedTensor] = Field(
        default_factory=list,
        description="Rows for the model's single input: lists, or objects by column name if the "
        "calibration set was a table. Or rows by input name.",
        examples=[[[0.0, 1.0, 2.0]], [{"age": 41, "income": 2.5}]],
    )
    logits: list[list[float]] | EncodedTensor = Field(
        default_factory=list, description="For a calibration of uploaded outputs."
    )
    probabilities: list[list[float]] | EncodedTensor = Field(
        default_factory=list, description="For a calibration of uploaded outputs."
    )
    scores: list[float] | EncodedTensor = Field(
        default_factory=list, description="One number a row, for a calibration of pairs."
    )
    supplied: dict[str, list[float] | EncodedTensor] = Field(
        default_factory=dict,
        description="Your own uncertainties by name, one per row, if one of them serves an event.",
    )


class CalibrationName(BaseModel):
    """The calibration that answered."""

    id: uuid.UUID = Field(description="Id of the version.")
    name: str = Field(description="Its name.")
    version: int = Field(description="The version that answered.")


class ScoredClass(BaseModel):
    """One class with the model's own softmax score and a calibrated probability."""

    class_: int = Field(alias="class", examples=[3], description="Its index.")
    label: str = Field(examples=["3"], description="Its name.")
    score: float = Field(examples=[0.93], description="The model's own softmax, not calibrated.")
    probability: float | None = Field(
        examples=[0.987],
        description="Of the first class that of `top1`, calibrated; the others are not, and share "
        "the rest in proportion to their scores. Null where Top-1 is no event.",
    )


class EventProbability(BaseModel):
    """The calibrated probability that the label is among the k most probable classes."""

    probability: float = Field(examples=[0.987], description="That the event holds, calibrated.")
    interval: tuple[float, float] = Field(
        examples=[(0.971, 0.995)], description="Of the probability, at the configured level."
    )
    measure: str = Field(
        examples=["neg_log_pmax"], description="The uncertainty measure of the bins."
    )
    uncertainty: float = Field(examples=[0.072], description="Its value for this row.")
    bin: int = Field(examples=[4], description="Its bin; 0 is the most certain.")


class Prediction(BaseModel):
    """The answer for one row; one ``top{k}`` for each event that was calibrated."""

    model_config = ConfigDict(
        json_schema_extra={
            "patternProperties": {
                r"^top[1-9]\d*$": {"$ref": "#/components/schemas/EventProbability"}
            }
        }
    )

    class_: int = Field(
        0, alias="class", examples=[3], description="The predicted class; absent for pairs."
    )
    label: str = Field("", examples=["3"], description="Its name; absent for pairs.")
    classes: list[ScoredClass] = Field(
        [], description="Five at most, the predicted one first; absent for pairs."
    )
    top1: EventProbability | None = Field(
        None, description="That `class` is right; absent where Top-1 is no event."
    )
    top5: EventProbability | None = Field(
        None, description="That the label is among five; absent where Top-5 is no event."
    )
    out_of_distribution: bool | None = Field(
        description="Whether the row is less certain than nearly all of the calibration set, or "
        "its inputs have numbers far outside it, as in another unit or on another scale."
    )
    adversarial: bool | None = Field(
        None,
        description="Whether the norm of the logits' Jacobian is above that of 95 % of the "
        "calibration set; absent where `jacobian_norm` serves no event.",
    )
    abstain: dict[str, bool] = Field(
        description="By `max_risk`: whether to abstain from the row; always true where no "
        "threshold keeps to that risk."
    )


class PredictAnswer(BaseModel):
    """One prediction per row, in the order of the request."""

    calibration: CalibrationName = Field(description="The calibration that answered.")
    columns: Literal["positional"] | None = Field(
        None,
        description="Present if the calibration has column names and the rows came without: they "
        "were read in the order of the calibration table.",
    )
    unproven: list[str] | None = Field(
        None, description="The names in `abstain` to which no threshold keeps; omitted if none."
    )
    predictions: list[Prediction] = Field(description="One per row, in the order of the request.")


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
                    "description": "With arrays: `id=…; name=…; version=…` of what answered; and "
                    "`; columns=positional`, as in JSON.",
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
    services: ServicesDep,
    caller: CallerDep,
    calibration: Annotated[  # noqa: ARG001 - read with the rest of the head; here it is documented
        str | None,
        Query(description="An id, a name, or `name@version`; only for bodies other than JSON."),
    ] = None,
) -> Response:
    """Answer each row with its class and the probability that it is right, with an interval."""
    return await answer_prediction(request, services.predictions, caller)


class ModelInMemory(BaseModel):
    """An ONNX model of predictions and its state."""

    name: str = Field(
        examples=["digits@1"],
        description="The calibration that it was loaded for; others may share it.",
    )
    sha256: str = Field(description="Digest of the ONNX file, of an ensemble the first one.")
    status: Literal["loaded", "loading", "failed", "unloaded"] = Field(
        description="`unloaded` after its process died; the next prediction loads it again."
    )
    problem: dict[str, Any] | None = Field(
        description="Problem that prevented loading; null unless `failed`."
    )
    device: str | None = Field(
        examples=["cpu"], description="Device that it is loaded on; null if it is not loaded."
    )
    provider: str | None = Field(
        examples=["CPUExecutionProvider"], description="The execution provider that runs it."
    )
    memory_bytes: int = Field(
        description="Memory of its process after loading; 0 if it is not loaded."
    )
    pending_requests: int = Field(description="Number of waiting predictions.")
    seconds_unused: float = Field(description="Seconds since its last prediction.")
    parity: Literal["not_needed", "checked", "unchecked"] | None = Field(
        description="Whether its answers were compared with those of the calibration: "
        "`not_needed` on the same provider, `unchecked` on another one without stored samples; "
        "null while it is not loaded."
    )
    parity_rows: int = Field(description="Number of stored samples that were compared.")


class ModelsInMemory(BaseModel):
    """Models in memory, last used first."""

    models: list[ModelInMemory] = Field(description="Last used first.")


@router.get("/models", summary="Which ONNX models are in memory?")
async def get_models(services: ServicesDep) -> ModelsInMemory:
    """Return the models that this server process has loaded for predictions."""
    return ModelsInMemory(
        models=[_shown(state) for state in services.models.states() if state.sha256]
    )


def _shown(state: ServedModelState) -> ModelInMemory:
    error = state.error if state.status == "failed" else None
    return ModelInMemory(
        name=state.name,
        sha256=state.sha256,
        status=state.status,
        problem=None if error is None else problem_of(error),
        device=state.device,
        provider=state.provider,
        memory_bytes=state.memory_bytes,
        pending_requests=state.pending,
        seconds_unused=round(state.seconds_unused, 3),
        parity=None if state.parity is None else state.parity.status,
        parity_rows=0 if state.parity is None else state.parity.rows,
    )
