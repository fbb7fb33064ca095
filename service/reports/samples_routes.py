"""``GET /calibrations/{id}/samples``: samples of the calibration set that are worth a look."""

import uuid
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from service.http.dependencies import CalibrationRef, TenantDep, WorkspaceDep
from service.http.negotiation import chosen_format
from service.http.problems import problems
from service.reports.error_samples import MOST, Kind
from service.reports.samples import list_samples, samples_csv

MEDIA_TYPES = {"json": "application/json", "csv": "text/csv"}
DEFAULT = 50

router = APIRouter(tags=["calibrations"])


class SampleOrigin(BaseModel):
    """Which calibration it is about."""

    id: uuid.UUID = Field(description="Of this version.")
    name: str = Field(description="Its name.")
    version: int = Field(description="The version that the reference meant.")


class ShownInput(BaseModel):
    """The begin of one input of a sample that is kept."""

    shape: list[int] = Field(description="Of this one sample.")
    first: list[Any] = Field(description="Its first numbers, eight at most.")


class Sample(BaseModel):
    """One sample for which the event fails."""

    row: int = Field(description="Its number in the calibration set, from 0.")
    label: int = Field(description="The class that it was given.")
    label_name: str = Field(description="The name of that class.")
    predicted: int = Field(description="The model's first class.")
    predicted_name: str = Field(description="The name of that class.")
    probability: float = Field(description="What is stated for its uncertainty.")
    interval: tuple[float, float] = Field(description="Of the probability.")
    bin: int = Field(description="Where its uncertainty lies; 0 is the most certain bin.")
    uncertainty: float = Field(description="By the measure that serves.")
    expected: float = Field(description="Posterior of its bin, from the bin's other samples.")
    inputs: dict[str, ShownInput] | None = Field(
        description="By input; null where the sample itself is not kept."
    )


class Samples(BaseModel):
    """A list of samples."""

    calibration: SampleOrigin = Field(description="Which calibration it is about.")
    kind: Kind = Field(description="What is listed.")
    why: str = Field(description="Why these, and in which order.")
    top_k: list[int] = Field(description="The events that there are.")
    k: int = Field(description="The event that fails for them.")
    measure: str = Field(description="The measure that serves the event.")
    n_samples: int = Field(description="Samples of the calibration set.")
    n_errors: int = Field(description="Those for which the event fails.")
    samples: list[Sample] = Field(description="The most suspicious first.")


@router.get(
    "/calibrations/{calibration_id}/samples",
    summary="List samples worth a look",
    response_model=Samples,
    responses={
        **problems(404, 406, 409, 422),
        200: {"content": {MEDIA_TYPES["csv"]: {}}},
    },
)
def get_samples(
    request: Request,
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration_id: CalibrationRef,
    kind: Annotated[
        Kind, Query(description="Whose label may be wrong, or of which the model was surest.")
    ] = "mislabelled",
    k: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="The event; the first by default.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST, description="The longest list.")] = DEFAULT,
    samples_format: Annotated[
        Literal["json", "csv"] | None,
        Query(alias="format", description="Instead of the Accept header."),
    ] = None,
) -> Response:
    """Give samples of the calibration set whose label is likely wrong, or the surest errors."""
    chosen = samples_format or chosen_format(request.headers.get("accept"), MEDIA_TYPES)
    found = list_samples(workspace, tenant_id, calibration_id, kind=kind, k=k, limit=limit)
    headers = {"Vary": "Accept"}
    if chosen == "csv":
        content = samples_csv(found.document)
        return Response(content, media_type=MEDIA_TYPES["csv"], headers=headers)
    return JSONResponse(found.document, headers=headers)
