"""Schemas of calibrations, as responses and the OpenAPI document show them."""

import uuid
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

import models
from howsure.report.findings import DocumentedFinding
from service.http.job_events import Progress


class MeasureCost(BaseModel):
    """Runs of the whole model for one row, and their time on the first rows."""

    passes: int = Field(description="Runs of the whole model.")
    ms_per_row: float = Field(description="Milliseconds.")


class Calibration(BaseModel):
    """One calibration: the job and its results."""

    id: uuid.UUID = Field(description="Of this version, for good.")
    name: str = Field(examples=["digits"], description="Shared by the versions.")
    version: int = Field(examples=[1], description="Counted per name, never reused.")
    status: models.JobStatus = Field(description="Status of the job.")
    promoted: bool = Field(description="Whether the name was told to mean this version.")
    refit_of: uuid.UUID | None = Field(
        description="The calibration whose records it was fitted to."
    )
    progress: Progress | None = Field(description="While it runs; null else.")
    created_at: datetime = Field(description="When it was accepted, in UTC.")
    finished_at: datetime | None = Field(description="When it ended, in UTC.")
    config: dict[str, Any] = Field(description="The configuration as resolved.")
    model: dict[str, Any] | None = Field(
        description="The ONNX model as found; null when its outputs were uploaded."
    )
    costs: dict[str, MeasureCost] | None = Field(
        description="What one row costs: `plain`, one run of the model, and what each measure "
        "that runs it again adds; null without a model."
    )
    data: dict[str, Any] = Field(description="Digest, samples and class counts.")
    versions: dict[str, str] = Field(description="Versions of the runtime and the libraries.")
    digest: str | None = Field(
        description="SHA-256 of all that its answers depend on, checked when it is loaded; null "
        "until it has succeeded."
    )
    accuracy: dict[str, float] | None = Field(
        examples=[{"1": 0.95, "5": 0.998}],
        description="Share of the calibration set for which each event holds.",
    )
    serve: dict[str, str] | None = Field(
        examples=[{"1": "neg_log_pmax", "5": "entropy"}],
        description="The uncertainty measure that serves each event.",
    )
    warnings: list[str] = Field(description="Sentences worth reading.")
    findings: list[DocumentedFinding] = Field(description="What looks wrong with it.")
    error: dict[str, Any] | None = Field(description="Why it failed, as a problem.")


class CalibrationPage(BaseModel):
    """A page of calibrations, newest first."""

    calibrations: list[Calibration] = Field(description="Of this page, newest first.")
    next_cursor: str | None = Field(
        description="The `cursor` of the next page; null on the last page."
    )


class RunCost(BaseModel):
    """The cost of a calibration."""

    samples: int = Field(description="Samples of both sets.")
    passes: int = Field(description="Runs of the whole model per sample; 0 without a model.")
    rows: int = Field(description="Rows through the model: samples times passes.")
    ms_per_row: float | None = Field(
        description="Milliseconds for all passes of a sample, as measured on a few of the first."
    )
    seconds: float | None = Field(
        description="Time of the model for all samples, on one device; null without a model."
    )
    device: str | None = Field(examples=["cpu"], description="Where that was measured.")
    stored_bytes: dict[str, int] = Field(
        examples=[{"model": 40_000, "sets": 2_000_000, "records": 900_000}],
        description="Of `model`, of `sets` until the job has ended, and of `records`.",
    )


class SampleAccuracy(BaseModel):
    """The share of some samples whose label is the most probable class, as Top-1 counts it."""

    value: float = Field(examples=[0.95], description="In 0 to 1; each sample counts as one.")
    interval: tuple[float, float] = Field(
        examples=[[0.916, 0.973]], description="Exact, at level 0.95."
    )
    n_samples: int = Field(examples=[256], description="How many were examined.")


class DryRun(BaseModel):
    """Result of a dry run; nothing of it is stored."""

    accuracy: SampleAccuracy = Field(
        description="Of the examined samples; of pairs, the share of correct ones."
    )
    findings: list[DocumentedFinding] = Field(description="What looks wrong with it.")
    warnings: list[str] = Field(description="Sentences worth reading.")
    cost: RunCost = Field(description="What the calibration would take.")
    config: dict[str, Any] = Field(description="The configuration as resolved.")
    model: dict[str, Any] | None = Field(
        description="The ONNX model as found; null when its outputs were uploaded."
    )
    data: dict[str, Any] = Field(description="Digest, samples and class counts.")
