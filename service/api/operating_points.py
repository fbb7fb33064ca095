"""``/calibrations/{id}/operating-points``: which threshold answers are held against, and why."""

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

import models
from service.api.dependencies import ActDep, CalibrationRef, TenantDep, WorkspaceDep
from service.api.problems import problems
from service.api.threshold_choice import Choice, Consequences, Expected, Preview, PreviewQuery
from service.operations import operating_points as operations

router = APIRouter(tags=["operating points"])


class Decision(BaseModel):
    """Who decides, and why."""

    model_config = ConfigDict(extra="forbid")

    author: str = Field(
        min_length=1,
        max_length=operations.MAX_AUTHOR_CHARACTERS,
        examples=["A. Reviewer"],
        description="Who answers for it.",
    )
    reason: str = Field(
        min_length=1,
        max_length=operations.MAX_REASON_CHARACTERS,
        examples=["Two of a hundred may be wrong, as agreed with the clinic."],
        description="Why, on one line.",
    )


class NewOperatingPoint(Choice, Decision):
    """A threshold to put in force."""

    name: str = Field(
        pattern=f"^{operations.NAME.pattern}$",
        examples=["automatic"],
        description="What answers call it, in `abstain`.",
    )


class OperatingPoint(BaseModel):
    """One decision of a calibration's history."""

    number: int = Field(description="Counts the calibration's decisions, from 1.")
    in_force: bool = Field(description="Whether answers are held against it.")
    name: str | None = Field(description="What answers call it; null where one was withdrawn.")
    threshold: float | None = Field(description="Uncertainty of Top-1, as float32.")
    chosen_by: Mapping[str, Any] | None = Field(description="What was asked for.")
    consequences: Consequences | None = Field(description="On the calibration set.")
    author: str = Field(description="Who answers for it.")
    reason: str = Field(description="Why.")
    created_at: datetime = Field(description="When it was decided, in UTC.")


class OperatingPoints(BaseModel):
    """The decisions of a calibration."""

    operating_points: list[OperatingPoint] = Field(description="Newest first.")


def resource(row: models.OperatingPoint, *, is_last: bool) -> OperatingPoint:
    """Render a row."""
    return OperatingPoint(
        number=row.number,
        in_force=is_last and row.threshold is not None,
        name=row.name,
        threshold=row.threshold,
        chosen_by=row.chosen_by,
        consequences=row.consequences,
        author=row.author,
        reason=row.reason,
        created_at=row.created_at,
    )


@router.get(
    "/calibrations/{calibration_id}/operating-points",
    summary="List what was decided",
    responses=problems(404),
)
def list_operating_points(
    workspace: WorkspaceDep, tenant_id: TenantDep, calibration_id: CalibrationRef
) -> OperatingPoints:
    """List the decisions of a calibration, newest first; the first one is in force, if any is."""
    rows = operations.operating_points(workspace, tenant_id, calibration_id)
    return OperatingPoints(operating_points=[resource(row, is_last=row is rows[0]) for row in rows])


@router.get(
    "/calibrations/{calibration_id}/operating-points/preview",
    summary="Look at what a threshold would do",
    responses=problems(404, 409, 422),
)
def preview_operating_point(
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration_id: CalibrationRef,
    asked: Annotated[PreviewQuery, Query()],
) -> Preview:
    """Return the threshold that a choice means and what it does to the calibration set."""
    found = operations.preview_operating_point(
        workspace, tenant_id, calibration_id, asked.choice(), volume=asked.volume
    )
    seen, expected = found.consequences, found.expected
    return Preview(
        threshold=found.threshold,
        certified=found.certified,
        consequences=None if seen is None else Consequences(**seen.as_dict()),
        labels_missing=found.labels_missing,
        max_risk=found.max_risk,
        delta=asked.delta,
        expected=None if expected is None else Expected(**expected.as_dict()),
    )


@router.post(
    "/calibrations/{calibration_id}/operating-points",
    summary="Put a threshold in force",
    status_code=HTTPStatus.CREATED,
    responses=problems(400, 404, 409, 422),
)
def post_operating_point(
    workspace: WorkspaceDep,
    act: ActDep,
    calibration_id: CalibrationRef,
    asked: NewOperatingPoint,
) -> OperatingPoint:
    """From now on `abstain` in answers says, by this name, what is beyond the threshold."""
    row = operations.save_operating_point(
        workspace,
        act.tenant_id,
        calibration_id,
        name=asked.name,
        choice=asked.choice(),
        author=asked.author,
        reason=asked.reason,
        act=act,
    )
    return resource(row, is_last=True)


@router.post(
    "/calibrations/{calibration_id}/operating-points/withdraw",
    summary="Put none in force",
    responses=problems(400, 404, 409, 422),
)
def post_withdrawal(
    workspace: WorkspaceDep, act: ActDep, calibration_id: CalibrationRef, asked: Decision
) -> OperatingPoint:
    """Take back the operating point in force; the history keeps it."""
    row = operations.withdraw_operating_point(
        workspace,
        act.tenant_id,
        calibration_id,
        author=asked.author,
        reason=asked.reason,
        act=act,
    )
    return resource(row, is_last=True)
