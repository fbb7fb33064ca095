"""Run a claimed calibration: records of every sample, then tables and scores, published at once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO

import numpy as np

import models
from service.core.fit import fit_calibration
from service.core.records import Records, build_records, concatenate
from service.core.tie_keys import tie_keys
from service.datasets import Batch, Dataset, open_dataset
from service.operations.config import CalibrationConfig
from service.operations.fitted_rows import fitted_rows
from service.operations.onnx_model import OnnxModelHandle, open_onnx_model
from service.operations.workspace import Workspace
from service.storage.calibrations import NewArtifact
from service.storage.job_queue import ClaimedJob, JobQueue, JobSignal, LeaseLost

BATCH_SAMPLES = 1024


class CalibrationCancelled(Exception):  # noqa: N818 - an outcome, not an error
    """Somebody asked the calibration to stop."""


class CalibrationInterrupted(Exception):  # noqa: N818 - an outcome, not an error
    """This process is to stop; the calibration goes back to the queue."""


@dataclass(frozen=True)
class _Run:
    workspace: Workspace
    queue: JobQueue
    job: ClaimedJob
    check: Callable[[], None]

    def report(self, stage: str, done: int, total: int) -> None:
        """Say how far it is; stop when told to."""
        self.check()
        signal = self.queue.report_progress(self.job, stage, done, total)
        if signal is JobSignal.CANCEL:
            raise CalibrationCancelled
        if signal is JobSignal.LOST:
            raise LeaseLost
