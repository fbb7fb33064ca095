"""Run of a calibration: record its sets, fit them and publish the results."""

import uuid
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import models
from howsure.report.fitted import (
    fitted_analysis,
    fitted_baselines,
    fitted_curves,
    fitted_mislabelled,
    fitted_oracle,
    fitted_verdict,
)
from howsure.report.plain_parts import plain_part
from howsure.report.words.fit_notes import fit_notes
from howsure.statistics.error_samples import choose_rows_to_keep
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import EventFit, Fit
from howsure.statistics.measures import LEARNED
from howsure.statistics.plain import to_plain
from howsure.statistics.records.records import Records
from service.calibrations.config import stored_options
from service.calibrations.findings import check_strict, findings_of_records
from service.jobs.progress import Progress
from service.jobs.queue import ClaimedJob, JobQueue
from service.jobs.record_set import (
    SAMPLES,
    RecordedSet,
    load_records,
    record_set,
)
from service.jobs.samples import keep_samples, rows_to_keep
from service.storage.artifact_keys import JobFiles
from service.storage.artifact_rows import NewArtifact
from service.storage.calibrations import CalibrationRepository
from service.storage.fit_results import bin_table_row
from service.storage.shards import keep_learned
from service.workspace import Workspace


def fitted_rows(fit: Fit, *, tenant_id: uuid.UUID, calibration_id: uuid.UUID) -> list[models.Base]:
    """Return every table of a fit, with its scores."""
    rows: list[models.Base] = []
    for k, event in fit.events.items():
        rows += [
            bin_table_row(
                found.table,
                tenant_id=tenant_id,
                calibration_id=calibration_id,
                k=k,
                measure=name,
                column=found.column,
                served=name == event.served,
                quantile_bins=found.quantile_bins,
                candidates=[asdict(candidate) for candidate in found.candidates],
                analysis=plain_part(fitted_analysis(event, name)),
                curves=plain_part(fitted_curves(found)),
                learned=event.learned.model if name == LEARNED and event.learned else None,
            )
            for name, found in event.measures.items()
        ]
    return rows


def fitted_values(fit: Fit, records: Records, options: FitOptions) -> dict[str, Any]:
    """Return the columns of the calibration's row, as plain data by event or by set."""
    events = fit.events

    def by_event(part: Callable[[EventFit], object]) -> dict[str, Any]:
        return {str(k): plain_part(part(event)) for k, event in events.items()}

    return {
        "accuracy": {str(k): event.accuracy for k, event in events.items()},
        "serve": {str(k): event.served for k, event in events.items()},
        "model_scores": to_plain(fit.model_scores),
        "verdicts": by_event(lambda event: fitted_verdict(event, options.folds)),
        "baselines": by_event(fitted_baselines),
        "oracles": by_event(fitted_oracle),
        "mislabelled": by_event(lambda event: fitted_mislabelled(event, records)),
    }


def run_calibration(
    workspace: Workspace, queue: JobQueue, job: ClaimedJob, *, check: Callable[[], None]
) -> None:
    """Run a claimed calibration to its end and publish the results.

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
    progress = Progress(queue, job, check)
    with workspace.database.reading(job.tenant_id) as session:
        row = CalibrationRepository(session, job.tenant_id).get(job.calibration_id)
    calibration = _records(workspace, row, "records", progress)
    if calibration is None:
        raise RuntimeError(f"calibration {row.id} has neither a set nor records")
    records = calibration.records
    further = _records(workspace, row, "evaluation_records", progress)
    evaluation = None if further is None else further.records
    findings = findings_of_records(row, records, evaluation)
    config = row.config
    check_strict(findings, config.get("strict", False))
    options = stored_options(config, tuple(config["top_k"]))
    progress.report("fit", 0, len(options.top_k) * len(options.measures), now=True)
    fit = workspace.runners.fitter.fit(
        records,
        options,
        evaluation=evaluation,
        n_classes=len(config["classes"]),
        on_progress=lambda done, total: progress.report("fit", done, total),
    )
    notes = fit_notes(fit, records, options)
    records.uncertainty.update(fit.learned_columns)
    kept = _samples(workspace, calibration, fit, progress)
    kept += keep_learned(workspace.artifacts, JobFiles.of(row.id), records, fit.learned_columns)
    sets = [calibration] if further is None else [calibration, further]
    providers = sorted(set().union(*(found.providers for found in sets)))
    progress.report("publish", 0, 1, now=True)
    queue.publish(
        job,
        rows=fitted_rows(fit, tenant_id=row.tenant_id, calibration_id=row.id),
        artifacts=[*(file for found in sets for file in found.artifacts), *kept],
        keep_sets=workspace.keep_inputs == "all",
        warnings=[*row.warnings, *_provider_warnings(providers), *notes],
        findings=to_plain(findings),
        **fitted_values(fit, records, options),
        **_ran_on(workspace, row, providers),
    )


def _ran_on(workspace: Workspace, row: models.Calibration, providers: list[str]) -> dict[str, Any]:
    """Return the model's column with the device that its records were made on."""
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


def _records(
    workspace: Workspace, row: models.Calibration, role: models.ArtifactRole, progress: Progress
) -> RecordedSet | None:
    """Return the records of a set: those that a refit shares with its source, or new ones."""
    stored = load_records(workspace, row, role)
    if stored is not None:
        return RecordedSet(stored, [], [], set())
    return record_set(
        workspace,
        row,
        row.artifacts,
        role,
        files=JobFiles.of(row.id),
        n_samples=row.data[SAMPLES[role]],
        progress=progress,
    )


def _samples(
    workspace: Workspace, recorded: RecordedSet, fit: Fit, progress: Progress
) -> list[NewArtifact]:
    """Store some samples of the set if configured: those that matter most for its first event."""
    if workspace.keep_inputs == "none" or not recorded.tasks:
        return []
    k, event = next(iter(fit.events.items()))
    served = event.measures[event.served]
    index = choose_rows_to_keep(
        recorded.records, k, served.column, served.table, n=rows_to_keep(recorded.tasks)
    )
    kept = keep_samples(
        workspace.artifacts,
        recorded.tasks,
        recorded.records,
        index,
        folder=workspace.spool.path,
        check=lambda: progress.report("samples", 0, 1),
    )
    return [kept]
