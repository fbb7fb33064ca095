"""By what a threshold is chosen, and what would follow from it: as JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator

import models
from howsure.statistics.operating_point import ThresholdChoice
from service.calibrations.fit_config import TINY
from service.http.dependencies import ActDep, CalibrationRef, TenantDep, WorkspaceDep
from service.http.problems import problems
from service.reports import operating_points as operations

DELTA = 0.05
MOST_VOLUME = 10**12
Share = Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]
Risk = Annotated[float, Field(ge=TINY, lt=1.0, allow_inf_nan=False)]
Number = Annotated[float, Field(ge=-3e38, le=3e38, allow_inf_nan=False)]


class Choice(BaseModel):
    """By what the threshold is chosen: exactly one of ``threshold``, ``coverage``, ``max_risk``."""

    model_config = ConfigDict(extra="forbid")

    threshold: Number | None = Field(
        None, description="The largest uncertainty of Top-1 that is accepted."
    )
    coverage: Share | None = Field(
        None, description="Share of the calibration set to accept, at least."
    )
    max_risk: Risk | None = Field(
        None, description="Error rate among what is accepted, bounded with confidence 1 - delta."
    )
    delta: Risk = Field(DELTA, description="Probability that the bound of `max_risk` fails.")

    @model_validator(mode="after")
    def _one_of_them(self) -> "Choice":
        if sum(found is not None for found in (self.threshold, self.coverage, self.max_risk)) != 1:
            raise ValueError("expected exactly one of threshold, coverage and max_risk")
        return self

    def choice(self) -> ThresholdChoice:
        """Return it as the operations take it."""
        return ThresholdChoice(self.threshold, self.coverage, self.max_risk, self.delta)


class PreviewQuery(Choice):
    """A threshold to look at."""

    volume: Annotated[int, Field(ge=1, le=MOST_VOLUME)] | None = Field(
        None, description="Tell what follows for so many answers, as there are on a day."
    )


class Consequences(BaseModel):
    """What a threshold does to the calibration set."""

    n_samples: int = Field(description="Samples of the set.")
    n_accepted: int = Field(description="Those at or below the threshold.")
    n_errors: int = Field(description="Those of them whose Top-1 class is wrong.")
    coverage: float = Field(description="Share that is accepted.")
    coverage_interval: tuple[float, float] = Field(description="Exact, at the config's level.")
    risk: float | None = Field(description="Error rate among what is accepted; null of nothing.")
    risk_interval: tuple[float, float] | None = Field(
        description="Exact, at the config's level, as if the threshold had been fixed beforehand."
    )


class Expected(BaseModel):
    """What is to be expected of so many answers on data like the calibration set."""

    volume: int = Field(description="Of how many.")
    accepted: float = Field(description="How many are accepted.")
    accepted_interval: tuple[float, float] = Field(
        description="`coverage_interval` of the consequences, of so many."
    )
    errors: float = Field(description="How many are accepted and wrong.")
    errors_interval: tuple[float, float] = Field(
        description="Exact, at the config's level, of the share of all samples."
    )
    reviewed: float = Field(description="How many are left to others.")


class Preview(BaseModel):
    """The threshold that a choice means."""

    threshold: float | None = Field(description="Null where none keeps to the risk.")
    certified: bool = Field(description="Whether `max_risk` is kept to with confidence 1 - delta.")
    consequences: Consequences | None = Field(
        description="Null without a threshold, and for a calibration that keeps no records."
    )
    labels_missing: int | None = Field(
        description="Where none keeps to the risk, about how many more labelled samples would "
        "let one; null where no number would."
    )
    max_risk: float | None = Field(
        description="The risk that was asked for; of another choice the least one, to a hundredth "
        "of a percent, that would accept as much: null where none would."
    )
    delta: float = Field(description="Probability that the bound of `max_risk` fails.")
    expected: Expected | None = Field(
        description="Of `volume` answers; null without it, and where consequences are."
    )


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
        consequences=None if seen is None else Consequences(**asdict(seen)),
        labels_missing=found.labels_missing,
        max_risk=found.max_risk,
        delta=asked.delta,
        expected=None if expected is None else Expected(**asdict(expected)),
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
