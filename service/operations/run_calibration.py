"""Run a claimed calibration: records of every sample, then tables and scores, published at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import models
from service.core.canonical_order import moved_to_canonical_order
from service.core.fit import Fit, fit_calibration
from service.core.kept_rows import choose_kept_rows
from service.core.records import Records
from service.operations.config import CalibrationConfig
from service.operations.findings_of_records import findings_of_records, plain_findings
from service.operations.fitted_rows import fitted_rows, fitted_values
from service.operations.job_progress import JobProgress
from service.operations.kept_samples import keep_samples, rows_to_keep
from service.operations.record_files import join_records
from service.operations.record_set import artifacts_of, record_set, shard_tasks
from service.operations.record_shard import ShardTask
from service.operations.stored_records import load_records
from service.operations.strict_findings import check_strict
from service.operations.workspace import Workspace
from service.storage.artifact_rows import NewArtifact
from service.storage.calibrations import CalibrationRepository
from service.storage.job_files import JobFiles
from service.storage.job_queue import ClaimedJob, JobQueue

RECORDS_OF: Mapping[models.ArtifactRole, models.ArtifactRole] = {
    "calibration": "records",
    "evaluation": "evaluation_records",
}


@dataclass(frozen=True)
class _Recorded:
    """The records of a calibration's sets, and what recording them left: nothing of a refit."""

    records: Records
    evaluation: Records | None
    artifacts: list[NewArtifact]
    tasks: list[ShardTask]
    providers: list[str]


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
    FindingRefused
        If something looks wrong that the configuration is strict about.
    ServiceError
        If a row breaks a rule, or the ONNX model does not answer.
    """
    progress = JobProgress(queue, job, check)
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, job.tenant_id).get(job.calibration_id)
    recorded = _stored(workspace, row) or _run(workspace, row, progress)
    findings = findings_of_records(row, recorded.records, recorded.evaluation)
    config = cast("dict[str, Any]", row.config)
    asked = CalibrationConfig.model_validate(config)
    check_strict(findings, asked.strict)
    options = asked.fit_options(tuple(config["top_k"]))
    progress.say("fit", 0, len(options.top_k) * len(options.measures), now=True)
    with moved_to_canonical_order(recorded.records):
        fit = fit_calibration(
            recorded.records,
            options=options,
            evaluation=recorded.evaluation,
            on_progress=lambda done, total: progress.say("fit", done, total),
        )
    kept = _samples(workspace, recorded, fit, progress)
    progress.say("publish", 0, 1, now=True)
    queue.publish(
        job,
        rows=fitted_rows(fit, tenant_id=row.tenant_id, calibration_id=row.id),
        artifacts=[*recorded.artifacts, *kept],
        keep_sets=workspace.keep_inputs == "all",
        warnings=[*row.warnings, *_provider_warnings(recorded.providers), *fit.warnings],
        findings=plain_findings(findings),
        **fitted_values(fit, recorded.records),
        **_ran_on(workspace, row, recorded.providers),
    )


def _ran_on(workspace: Workspace, row: models.Calibration, providers: list[str]) -> dict[str, Any]:
    """Return the model's column with what its records were made on, maybe not where it was sent."""
    if row.onnx_model is None or not providers:
        return {}
    provider, here = providers[0], workspace.runners.device()
    name = here.name if here.provider == provider else provider
    return {"onnx_model": {**row.onnx_model, "provider": provider, "device": name}}


def _provider_warnings(providers: list[str]) -> list[str]:
    if len(providers) < 2:  # noqa: PLR2004 - one is as it should be
        return []
    told = (
        f"The model ran with {' and '.join(providers)} for different parts of the sets: their "
        "uncertainties differ in their last digits. Calibrate on machines of one kind."
    )
    return [told]


def _stored(workspace: Workspace, row: models.Calibration) -> _Recorded | None:
    """Return the records that a refit shares with its source; None for another calibration."""
    records = load_records(workspace, row, "records")
    if records is None:
        return None
    return _Recorded(records, load_records(workspace, row, "evaluation_records"), [], [], [])


def _run(workspace: Workspace, row: models.Calibration, progress: JobProgress) -> _Recorded:
    """Record the calibration set and, if one was sent, the evaluation set."""
    data = cast("dict[str, Any]", row.data)
    counts = {"calibration": data["samples"], "evaluation": data["evaluation_samples"]}
    files = JobFiles.of(row.id)
    artifacts: list[NewArtifact] = []
    sets: dict[str, Records] = {}
    tasks: dict[str, list[ShardTask]] = {}
    providers: set[str] = set()
    for location, role in RECORDS_OF.items():
        shards = [found for found in row.artifacts if found.role == location]
        if not shards:
            continue
        tasks[location] = shard_tasks(
            row, shards, files=files, role=role, location=location, n_samples=counts[location]
        )
        stored = record_set(workspace, tasks[location], progress)
        made = artifacts_of(tasks[location], stored)
        sets[location] = join_records(workspace.artifacts, made, n_samples=counts[location])
        artifacts += made
        providers |= {found.provider for found in stored}
    found = sorted(providers - {""})
    return _Recorded(
        sets["calibration"], sets.get("evaluation"), artifacts, tasks["calibration"], found
    )


def _samples(
    workspace: Workspace, recorded: _Recorded, fit: Fit, progress: JobProgress
) -> list[NewArtifact]:
    """Keep some samples of the set, if any are to be: those that its first event points at."""
    if workspace.keep_inputs == "none" or not recorded.tasks:
        return []
    k, event = next(iter(fit.events.items()))
    served = event.measures[event.served]
    index = choose_kept_rows(
        recorded.records, k, served.column, served.table, n=rows_to_keep(recorded.tasks)
    )
    kept = keep_samples(
        workspace.artifacts,
        recorded.tasks,
        recorded.records,
        index,
        limits=workspace.limits.datasets,
        folder=workspace.spool.path,
        check=lambda: progress.say("samples", 0, 1),
    )
    return [kept]
