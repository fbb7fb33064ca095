"""Routes of operating points: thresholds on the uncertainty of Top-1."""

import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator

import models
from howsure.limits import TINY
from howsure.report.report import Consequences
from howsure.report.words.learned import CERTIFIED
from howsure.statistics.measures.scale import scale_of
from howsure.statistics.operating_point import ExpectedVolume, ThresholdChoice
from service.errors import InvalidInput
from service.http.dependencies import (
    CalibrationRef,
    CallDep,
    PageCursor,
    PageLimit,
    TenantDep,
    WorkspaceDep,
    in_documents_lane,
)
from service.http.problems import problems
from service.reports import operating_points as operations
from service.reports.fitness import reasons_against
from service.workspace import Workspace

DELTA = 0.05
MOST_VOLUME = 10**12
THRESHOLD = "Largest accepted uncertainty of Top-1; of pairs, the least accepted score."
Share = Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]
Risk = Annotated[float, Field(ge=TINY, lt=1.0, allow_inf_nan=False)]
Number = Annotated[float, Field(ge=-3e38, le=3e38, allow_inf_nan=False)]


class Choice(BaseModel):
    """The criterion of a threshold: exactly one of ``threshold``, ``coverage``, ``max_risk``."""

    model_config = ConfigDict(extra="forbid")

    threshold: Number | None = Field(None, description=THRESHOLD)
    coverage: Share | None = Field(None, description="Least accepted share of calibration samples.")
    max_risk: Risk | None = Field(
        None, description="Largest error rate of accepted answers, with confidence 1 - delta."
    )
    delta: Risk = Field(DELTA, description="Probability that the bound of `max_risk` fails.")

    @model_validator(mode="after")
    def _one_of_them(self) -> "Choice":
        if sum(found is not None for found in (self.threshold, self.coverage, self.max_risk)) != 1:
            raise ValueError("expected exactly one of threshold, coverage and max_risk")
        return self

    def choice(self) -> ThresholdChoice:
        """Return the criterion for the statistics."""
        return ThresholdChoice(self.threshold, self.coverage, self.max_risk, self.delta)


class PreviewQuery(Choice):
    """A threshold to preview."""

    volume: Annotated[int, Field(ge=1, le=MOST_VOLUME)] | None = Field(
        None, description="Return the expected counts for this number of answers."
    )


class Preview(BaseModel):
    """The threshold of a choice, and its effect."""

    threshold: float | None = Field(description=f"{THRESHOLD} Null if none meets the risk.")
    measure: str = Field(description="The measure that serves Top-1, which has the threshold.")
    design: list[str] = Field(
        description="`weight`, `group` or both, if the calibration samples have them. The test of "
        "`max_risk` is then approximate."
    )
    certified: bool = Field(description="Whether `max_risk` holds with confidence 1 - delta.")
    assurance: str | None = Field(description="`certified`, or estimated and why; null: untested.")
    consequences: Consequences | None = Field(
        description="Null without a threshold, and for a calibration without records."
    )
    labels_missing: int | None = Field(
        description="If no threshold meets the risk: about how many more labelled samples would "
        "allow one; null if these samples do not tell a number."
    )
    out_of_reach: bool = Field(
        False, description="Whether more labels would clearly not allow a threshold."
    )
    max_risk: float | None = Field(
        description="The requested risk; for other choices the least risk, to 0.01 percent, that "
        "would accept as much; null if there is none."
    )
    delta: float = Field(description="Probability that the bound of `max_risk` fails.")
    expected: ExpectedVolume | None = Field(
        description="Expected counts for `volume` answers; null without it or without consequences."
    )


router = APIRouter(tags=["operating points"])


class Decision(BaseModel):
    """The author of a decision and the reason."""

    model_config = ConfigDict(extra="forbid")

    author: str = Field(
        min_length=1,
        max_length=operations.MAX_AUTHOR_CHARACTERS,
        examples=["A. Reviewer"],
        description="Who decided.",
    )
    reason: str = Field(
        min_length=1,
        max_length=operations.MAX_REASON_CHARACTERS,
        examples=["Two of a hundred may be wrong, as agreed with the clinic."],
        description="The reason, on one line.",
    )


class NewOperatingPoint(Choice, Decision):
    """A threshold to activate."""

    name: str = Field(
        pattern=f"^{operations.NAME.pattern}$",
        examples=["automatic"],
        description="Its name in `abstain` of answers.",
    )


class OperatingPoint(BaseModel):
    """One decision of a calibration's history."""

    number: int = Field(description="Number of the decision, from 1.")
    in_force: bool = Field(description="Whether it is active.")
    name: str | None = Field(description="Its name in answers; null for a withdrawal.")
    threshold: float | None = Field(description=f"{THRESHOLD} A float32; null: withdrawn.")
    chosen_by: Mapping[str, Any] | None = Field(description="The criterion of the choice.")
    consequences: Consequences | None = Field(description="On the calibration set.")
    author: str = Field(description="Who decided.")
    reason: str = Field(description="The reason.")
    created_at: datetime = Field(description="Time of the decision, in UTC.")
    warnings: list[str] = Field(
        [],
        description="Of the active one: why the calibration should not be used, by its findings "
        "and further sets; empty if nothing is known against it.",
    )


class OperatingPoints(BaseModel):
    """A page of the decisions of a calibration, newest first."""

    operating_points: list[OperatingPoint] = Field(description="Newest first.")
    next_cursor: str | None = Field(description="`cursor` of the next page; null at the end.")


_NUMBER = re.compile(r"[0-9]{1,6}")


def resource(
    row: models.OperatingPoint, measure: str = "", *, workspace: Workspace | None = None
) -> OperatingPoint:
    """Return the resource of a row; ``workspace`` is given for the last decision."""
    names = OperatingPoint.model_fields.keys() - {"in_force", "warnings"}
    values = {name: getattr(row, name) for name in names}
    values["threshold"] = scale_of(measure).of(row.threshold)
    in_force = workspace is not None and row.threshold is not None
    warnings: list[str] = []
    if workspace is not None and in_force:
        warnings += reasons_against(workspace, row.tenant_id, row.calibration_id)
    return OperatingPoint(in_force=in_force, warnings=warnings, **values)


@router.get(
    "/calibrations/{calibration_id}/operating-points",
    summary="List the operating points",
    responses=problems(404, 422),
)
def list_operating_points(
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration_id: CalibrationRef,
    limit: PageLimit = 50,
    cursor: PageCursor = None,
) -> OperatingPoints:
    """List the decisions of a calibration, newest first; only the first of all can be active."""
    if cursor is not None and _NUMBER.fullmatch(cursor) is None:
        raise InvalidInput.at("cursor", "expected the next_cursor of a page")
    before = None if cursor is None else int(cursor)
    measure, rows = operations.operating_points(
        workspace, tenant_id, calibration_id, before=before, limit=limit + 1
    )
    last = workspace if cursor is None else None
    page = [
        resource(row, measure, workspace=last if row is rows[0] else None) for row in rows[:limit]
    ]
    next_cursor = None if len(rows) <= limit else str(page[-1].number)
    return OperatingPoints(operating_points=page, next_cursor=next_cursor)


@router.get(
    "/calibrations/{calibration_id}/operating-points/preview",
    summary="Preview a threshold",
    responses=problems(404, 409, 422),
)
@in_documents_lane
def preview_operating_point(
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    calibration_id: CalibrationRef,
    asked: Annotated[PreviewQuery, Query()],
) -> Preview:
    """Return the threshold of a choice and its effect on the calibration set."""
    return previewed(workspace, tenant_id, calibration_id, asked)


def previewed(
    workspace: Workspace, tenant_id: UUID, reference: str, asked: PreviewQuery
) -> Preview:
    """Return the threshold of a choice and its effect on the calibration set."""
    measure, design, grounds, found = operations.preview_operating_point(
        workspace, tenant_id, reference, asked.choice(), volume=asked.volume
    )
    return Preview(
        **asdict(found),
        measure=measure,
        design=design,
        certified=grounds == CERTIFIED,
        assurance=grounds,
        delta=asked.delta,
    )


@router.post(
    "/calibrations/{calibration_id}/operating-points",
    summary="Activate a threshold",
    status_code=HTTPStatus.CREATED,
    responses=problems(400, 404, 409, 422),
)
@in_documents_lane
def post_operating_point(
    ctx: CallDep, calibration_id: CalibrationRef, asked: NewOperatingPoint
) -> OperatingPoint:
    """From now on `abstain` in answers tells under this name what exceeds the threshold."""
    measure, row = operations.save_operating_point(
        ctx,
        calibration_id,
        name=asked.name,
        choice=asked.choice(),
        author=asked.author,
        reason=asked.reason,
    )
    return resource(row, measure, workspace=ctx.workspace)


@router.post(
    "/calibrations/{calibration_id}/operating-points/withdraw",
    summary="Withdraw the operating point",
    responses=problems(400, 404, 409, 422),
)
def post_withdrawal(
    ctx: CallDep, calibration_id: CalibrationRef, asked: Decision
) -> OperatingPoint:
    """Deactivate the active operating point; the history keeps it."""
    row = operations.withdraw_operating_point(
        ctx, calibration_id, author=asked.author, reason=asked.reason
    )
    return resource(row, workspace=ctx.workspace)
