"""How far a job is, as every resource that is one shows it."""

from typing import Protocol

from pydantic import BaseModel, Field

import models


class Progress(BaseModel):
    """How far a running job has come: with the stage that it is at, not with all of them."""

    stage: str = Field(examples=["calibration"], description="What it is at.")
    done: int = Field(examples=[2560], description="How much of the stage is done.")
    total: int = Field(examples=[5000], description="How much there is; 0 where not known.")
    rows_per_second: float | None = Field(
        examples=[1250.0],
        description="Rows, or what else `done` counts, of the present stage in a second, over the "
        "last half minute of this attempt; null while unknown.",
    )
    eta_seconds: float | None = Field(
        examples=[1.95],
        description="Seconds to the end of the present stage at that rate, not to the end of the "
        "job; null while unknown.",
    )


class HasProgress(Protocol):
    """A job, or what is known of one."""

    @property
    def status(self) -> models.JobStatus:
        """Where it stands."""

    @property
    def progress_stage(self) -> str | None:
        """What it is at."""

    @property
    def progress_done(self) -> int:
        """How much of the stage is done."""

    @property
    def progress_total(self) -> int:
        """How much there is."""

    @property
    def progress_rate(self) -> float | None:
        """What is done in a second."""


def progress_of(job: HasProgress) -> Progress | None:
    """Return how far a running job has come."""
    if job.status != "running" or job.progress_stage is None:
        return None
    rate, left = job.progress_rate, job.progress_total - job.progress_done
    eta = round(left / rate, 2) if rate and job.progress_total else None
    return Progress(
        stage=job.progress_stage,
        done=job.progress_done,
        total=job.progress_total,
        rows_per_second=None if rate is None else round(rate, 3),
        eta_seconds=eta,
    )
