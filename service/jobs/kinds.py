"""The kinds of jobs there are, and what runs each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import models
from service.operations.run_calibration import run_calibration
from service.operations.run_evaluation import run_evaluation
from service.operations.workspace import Workspace
from service.storage.job_queue import ClaimedJob, JobQueue, JobTable


class RunJob(Protocol):
    """Run a claimed job to its end; ``check`` raises to stop it."""

    def __call__(
        self, workspace: Workspace, queue: JobQueue, job: ClaimedJob, *, check: Callable[[], None]
    ) -> None:
        """Publish what the job finds."""


@dataclass(frozen=True)
class JobKind:
    """A table whose rows are jobs, and what runs one."""

    name: str
    table: type[JobTable]
    run: RunJob


KINDS = (
    JobKind("calibration", models.Calibration, run_calibration),
    JobKind("evaluation", models.Evaluation, run_evaluation),
)
