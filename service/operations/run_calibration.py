"""Run a claimed calibration: records of every sample, then tables and scores, published at once."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, cast

import numpy as np

import models
from service.core.fit import fit_calibration
from service.core.records import Records, concatenate
from service.datasets import open_dataset
from service.operations.config import CalibrationConfig
from service.operations.fitted_rows import fitted_rows
from service.operations.load_served import open_files
from service.operations.sample_records import Recorder, model_recorder, scores_recorder
from service.operations.workspace import Workspace
from service.storage.calibrations import CalibrationRepository, NewArtifact
from service.storage.job_queue import ClaimedJob, JobQueue, JobSignal, LeaseLost

BATCH_SAMPLES = 1024
PROGRESS_SECONDS = 0.5


class CalibrationCancelled(Exception):
    """Somebody asked the calibration to stop."""


class CalibrationInterrupted(Exception):
    """The process is to stop; the calibration goes back to the queue."""


def run_calibration(
    workspace: Workspace, queue: JobQueue, job: ClaimedJob, *, check: Callable[[], None]
) -> None:
    """Run a claimed calibration to its end and publish what it found.

    ``check`` is called between batches and raises to stop the run.

    Raises
    ------
    CalibrationCancelled
        If it was asked to stop.
    LeaseLost
        If another worker has taken the job over; nothing is published then.
    ServiceError
        If a row breaks a rule, or the ONNX model does not answer.
    """
    progress = _Progress(queue, job, check)
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, job.tenant_id).get(job.calibration_id)
    config = cast("dict[str, Any]", row.config)
    options = CalibrationConfig.model_validate(config).fit_options(tuple(config["top_k"]))
    with ExitStack() as opened:
        recorder = _recorder(workspace, row, opened)
        records = _records(workspace, row, "calibration", recorder, progress)
        evaluation = None
        if any(artifact.role == "evaluation" for artifact in row.artifacts):
            evaluation = _records(workspace, row, "evaluation", recorder, progress)
    fit = fit_calibration(
        records,
        options=options,
        evaluation=evaluation,
        on_progress=lambda done, total: progress.say("fit", done, total),
    )
    progress.say("publish", 0, 1, now=True)
    with _kept(workspace, job, records, evaluation) as artifacts:
        queue.publish(
            job,
            rows=fitted_rows(fit, tenant_id=row.tenant_id, calibration_id=row.id),
            artifacts=artifacts,
            accuracy={str(k): event.accuracy for k, event in fit.events.items()},
            serve={str(k): event.served for k, event in fit.events.items()},
            warnings=[*row.warnings, *fit.warnings],
        )


@dataclass
class _Progress:
    """Tells the database how far the run is, not more often than a person would look."""

    queue: JobQueue
    job: ClaimedJob
    check: Callable[[], None]
    said: float = field(default=float("-inf"))

    def say(self, stage: str, done: int, total: int, *, now: bool = False) -> None:
        """Report the stage, and stop the run when told to."""
        self.check()
        if not now and time.monotonic() - self.said < PROGRESS_SECONDS:
            return
        signal = self.queue.report_progress(self.job, stage, done, total)
        self.said = time.monotonic()
        if signal is JobSignal.CANCEL:
            raise CalibrationCancelled
        if signal is JobSignal.LOST:
            raise LeaseLost


def _recorder(workspace: Workspace, row: models.Calibration, opened: ExitStack) -> Recorder:
    config = cast("dict[str, Any]", row.config)
    if row.onnx_model is None:
        return scores_recorder(top_k=config["top_k"], seed=config["seed"])
    files = open_files(workspace.artifacts, row, opened)
    resolved = cast("dict[str, Any]", row.onnx_model)["resolved"]
    return model_recorder(workspace.runners, files, resolved, seed=config["seed"])


def _records(
    workspace: Workspace,
    row: models.Calibration,
    role: str,
    recorder: Recorder,
    progress: _Progress,
) -> Records:
    """Return the records of all samples of one set, in their order."""
    artifact = next(found for found in row.artifacts if found.role == role)
    parts: list[Records] = []
    with (
        workspace.artifacts.local_path(artifact.key, artifact.sha256) as path,
        open_dataset(path, location=role, limits=workspace.limits.datasets) as dataset,
    ):
        total = dataset.info.n_samples
        progress.say(role, 0, total, now=True)
        for batch in dataset.batches(BATCH_SAMPLES):
            parts.append(recorder(batch, role))
            progress.say(role, batch.start + len(batch.labels), total)
    return concatenate(parts)


@contextmanager
def _kept(
    workspace: Workspace, job: ClaimedJob, records: Records, evaluation: Records | None
) -> Iterator[list[NewArtifact]]:
    """Store the records; they are removed again if the block finds that the job was lost.

    After any other failure of publishing it is not known whether they are referred to by now, so
    they stay; what nothing refers to is swept.
    """
    sets: list[tuple[models.ArtifactRole, Records]] = [("records", records)]
    if evaluation is not None:
        sets.append(("evaluation_records", evaluation))
    kept: list[NewArtifact] = []
    try:
        for role, found in sets:
            text = BytesIO()
            np.savez(text, allow_pickle=False, **found.to_arrays())
            # An attempt's number may be given out again, so it does not make the key unique.
            key = f"calibrations/{job.calibration_id}/{role}-{uuid.uuid4()}"
            stored = workspace.artifacts.put_bytes(key, text.getvalue())
            label = f"{role}.npz"
            kept.append(NewArtifact(role, 0, label, key, stored.sha256, stored.size))
        yield kept
    except LeaseLost:
        workspace.artifacts.delete([artifact.key for artifact in kept])
        raise
