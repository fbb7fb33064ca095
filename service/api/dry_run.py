"""The answer to a dry run of ``POST /calibrate``."""

from typing import Any

from pydantic import BaseModel, Field

from service.api.calibrations import Finding, rendered_findings
from service.operations import dry_run as operation
from service.operations.findings_of_records import plain_findings


class RunCost(BaseModel):
    """What the calibration would take."""

    samples: int = Field(description="Of both sets.")
    passes: int = Field(description="Runs of the whole model for each; 0 without a model.")
    rows: int = Field(description="Rows through the model: samples times passes.")
    ms_per_row: float | None = Field(
        description="Milliseconds for all passes of a sample, as a few of the first took."
    )
    seconds: float | None = Field(description="Of the model over all samples, on one device.")
    device: str | None = Field(examples=["cpu"], description="Where that was measured.")
    stored_bytes: dict[str, int] = Field(
        examples=[{"model": 40_000, "sets": 2_000_000, "records": 900_000}],
        description="Of `model`, of `sets` until the job has ended, and of `records`.",
    )


class DryRun(BaseModel):
    """What a calibration would be; nothing of it was kept."""

    findings: list[Finding] = Field(description="What looks wrong with it.")
    warnings: list[str] = Field(description="Sentences worth reading.")
    cost: RunCost = Field(description="What the calibration would take.")
    config: dict[str, Any] = Field(description="The configuration as resolved.")
    model: dict[str, Any] | None = Field(
        description="The ONNX model as found; null when its outputs were uploaded."
    )
    data: dict[str, Any] = Field(description="Digest, samples and class counts.")


def dry_run_answer(tried: operation.DryRun) -> DryRun:
    """Render what was found."""
    onnx_model = None if tried.onnx_model is None else dict(tried.onnx_model)
    if onnx_model is not None:
        # Of each measure; those of a sample are in the cost.
        onnx_model.pop("costs")
    return DryRun(
        findings=rendered_findings(plain_findings(tried.findings)),
        warnings=tried.warnings,
        cost=RunCost.model_validate(operation.plain_cost(tried.cost)),
        config=dict(tried.config),
        model=onnx_model,
        data=dict(tried.data),
    )
