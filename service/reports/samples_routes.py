"""``GET /calibrations/{id}/samples``: samples with likely wrong labels, and confident errors."""

import uuid
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from service.http.dependencies import CalibrationRef, TenantDep, WorkspaceDep, in_documents_lane
from service.http.negotiation import chosen_format
from service.http.problems import problems
from service.reports.error_samples import MOST, Kind
from service.reports.samples import list_samples, samples_csv

MEDIA_TYPES = {"json": "application/json", "csv": "text/csv"}
DEFAULT = 50

router = APIRouter(tags=["calibrations"])


class SampleOrigin(BaseModel):
    """The calibration of the samples."""

    id: uuid.UUID = Field(description="Id of the version.")
    name: str = Field(description="Its name.")
    version: int = Field(description="The version.")


class ShownInput(BaseModel):
    """The first numbers of one input of a stored sample."""

    shape: list[int] = Field(description="Shape of the sample.")
    first: list[Any] = Field(description="Its first numbers, at most eight.")


class Sample(BaseModel):
    """A sample for which the event fails."""

    row: int = Field(description="Its number in the calibration set, from 0.")
    label: int = Field(description="The labelled class.")
    label_name: str = Field(description="The name of that class.")
    predicted: int = Field(description="The predicted class.")
    predicted_name: str = Field(description="The name of that class.")
    probability: float = Field(description="The probability served for its uncertainty.")
    interval: tuple[float, float] = Field(description="Interval of the probability.")
    bin: int = Field(description="The bin of its uncertainty; 0 is the most certain.")
    uncertainty: float = Field(description="By the served measure.")
    expected: float = Field(description="Posterior of its bin, from the bin's other samples.")
    inputs: dict[str, ShownInput] | None = Field(
        description="By input; null if the sample is not stored."
    )


class Samples(BaseModel):
    """A list of samples."""

    calibration: SampleOrigin = Field(description="The calibration of the samples.")
    kind: Kind = Field(description="The kind of list.")
    why: str = Field(description="Selection and order of the samples, in words.")
    top_k: list[int] = Field(description="The events of the calibration.")
    k: int = Field(description="The event that fails.")
    measure: str = Field(description="The served measure of the event.")
    n_samples: int = Field(description="Samples of the calibration set.")
    n_errors: int = Field(description="Samples for which the event fails.")
    samples: list[Sample] = Field(description="The most suspicious samples first.")


@router.get(
    "/calibrations/{calibration_id}/samples",
    summary="List likely wrong labels or confident errors",
    response_model=Samples,
    responses={
        **problems(404, 406, 409, 422),
        200: {"content": {MEDIA_TYPES["csv"]: {}}},
    },
)
@in_documents_lane
def get_samples(
    request: Request,
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration_id: CalibrationRef,
    kind: Annotated[
        Kind, Query(description="Likely wrong labels, or the most confident errors.")
    ] = "mislabelled",
    k: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="The event; the first by default.")
    ] = None,
    limit: Annotated[
        int, Query(ge=1, le=MOST, description="Maximum length of the list.")
    ] = DEFAULT,
    samples_format: Annotated[
        Literal["json", "csv"] | None,
        Query(alias="format", description="Instead of the Accept header."),
    ] = None,
) -> Response:
    """Return calibration samples with likely wrong labels, or the most confident errors."""
    chosen = samples_format or chosen_format(request.headers.get("accept"), MEDIA_TYPES)
    found = list_samples(workspace, tenant_id, calibration_id, kind=kind, k=k, limit=limit)
    headers = {"Vary": "Accept"}
    if chosen == "csv":
        content = samples_csv(found.document)
        return Response(content, media_type=MEDIA_TYPES["csv"], headers=headers)
    return JSONResponse(found.document, headers=headers)
