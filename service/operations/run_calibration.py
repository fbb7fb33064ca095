"""Run a claimed calibration: records of every sample, then tables and scores, published at once."""

from collections.abc import Callable
from typing import Any, cast

import models
from service.core.fit import fit_calibration
from service.core.records import Records
from service.operations.config import CalibrationConfig
from service.operations.fitted_rows import fitted_rows, fitted_values
from service.operations.job_progress import JobProgress
from service.operations.sample_records import record_set
from service.operations.stored_records import kept_records, load_records
from service.operations.workspace import Workspace
from service.storage.calibrations import CalibrationRepository
from service.storage.job_queue import ClaimedJob, JobQueue


def run_calibration(
    workspace: Workspace, queue: JobQueue, job: ClaimedJob, *, check: Callable[[], None]
) -> None:
    """Run a claimed calibration to its end and publish what it found.

    ``check`` is called between batches and raises to stop the run.

    Raises
    ------
    JobCancelled
        If it was asked to stop.
    LeaseLost
        If another worker has taken the job over; nothing is published then.
    ServiceError
        If a row breaks a rule, or the ONNX model does not answer.
    """
    progress = JobProgress(queue, job, check)
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, job.tenant_id).get(job.calibration_id)
    config = cast("dict[str, Any]", row.config)
    options = CalibrationConfig.model_validate(config).fit_options(tuple(config["top_k"]))
    found = _stored(workspace, row)
    made = {} if found else _run(workspace, row, progress)
    records = (found or made)["records"]
    fit = fit_calibration(
        records,
        options=options,
        evaluation=(found or made).get("evaluation_records"),
        on_progress=lambda done, total: progress.say("fit", done, total),
    )
    progress.say("publish", 0, 1, now=True)
    with kept_records(workspace, row.id, made) as artifacts:
        queue.publish(
            job,
            rows=fitted_rows(fit, tenant_id=row.tenant_id, calibration_id=row.id),
            artifacts=artifacts,
            warnings=[*row.warnings, *fit.warnings],
            **fitted_values(fit, records),
            **(_ran_on(workspace, row) if made else {}),
        )


def _ran_on(workspace: Workspace, row: models.Calibration) -> dict[str, Any]:
    """Return the model's column with what its records were made on, maybe not where it was sent."""
    if row.onnx_model is None:
        return {}
    device = workspace.runners.device()
    found = {"provider": device.provider, "device": device.name}
    return {"onnx_model": {**row.onnx_model, **found}}


def _stored(workspace: Workspace, row: models.Calibration) -> dict[models.ArtifactRole, Records]:
    """Return the records that a refit shares with its source; none for another calibration."""
    roles: tuple[models.ArtifactRole, ...] = ("records", "evaluation_records")
    sets = {role: load_records(workspace, row, role) for role in roles}
    return {role: records for role, records in sets.items() if records is not None}


def _run(
    workspace: Workspace, row: models.Calibration, progress: JobProgress
) -> dict[models.ArtifactRole, Records]:
    """Run the model over the calibration set and, if one was sent, the evaluation set."""
    sets = {artifact.role: artifact for artifact in row.artifacts}
    made: dict[models.ArtifactRole, Records] = {
        "records": record_set(workspace, row, sets["calibration"], progress, location="calibration")
    }
    if "evaluation" in sets:
        made["evaluation_records"] = record_set(
            workspace, row, sets["evaluation"], progress, location="evaluation"
        )
    return made
