"""Further sets on a finished calibration: accepted, judged, read, deleted."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any, cast

import models
from service.core.further_set import judge_further_set
from service.core.mislabelled import mislabelled_candidates
from service.core.out_of_distribution import OOD_LEVELS
from service.core.plain_data import as_plain
from service.datasets import Dataset, open_dataset
from service.errors import InvalidDataset
from service.operations.fitted_rows import MISLABELLED_SHOWN
from service.operations.job_progress import JobProgress
from service.operations.label_range import check_label_range
from service.operations.load_served import load_served
from service.operations.onnx_model import TRIAL_ROWS
from service.operations.pass_budget import check_further_budget
from service.operations.sample_records import record_set
from service.operations.stored_records import kept_records, load_records, require_records
from service.operations.uploads import UploadedFile
from service.operations.workspace import Workspace
from service.storage.artifact_rows import NewArtifact
from service.storage.bin_tables import core_table, tables_of
from service.storage.calibrations import CalibrationRepository
from service.storage.evaluations import EvaluationRepository
from service.storage.job_queue import ClaimedJob, JobQueue

LOCATION = "evaluation"


def start_evaluation(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    reference: str,
    *,
    name: str,
    uploaded: UploadedFile,
) -> models.Evaluation:
    """Check a further set against a finished calibration, keep it and queue its evaluation.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, it has not succeeded or keeps no records, or the name is
        taken.
    InvalidInput
        If the set breaks a rule, does not suit the calibration, or is too large for its passes.
    """
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, tenant_id).find_ready(reference)
    require_records(row)
    limits = workspace.limits.datasets
    with open_dataset(
        uploaded.path, location=LOCATION, limits=limits, labels_required=False
    ) as dataset:
        info = dataset.info
        _suits(workspace, tenant_id, row, dataset)
        if info.labelled:
            n_classes = len(cast("dict[str, Any]", row.config)["classes"])
            check_label_range(dataset.labels(), LOCATION, n_classes)
    evaluation_id = uuid.uuid4()
    key = f"calibrations/{row.id}/evaluation-{evaluation_id}"
    stored = workspace.artifacts.put_file(key, uploaded.path)
    artifact = NewArtifact("evaluation", 0, uploaded.label, key, stored.sha256, stored.size)
    data = {
        "sha256": stored.sha256,
        "samples": info.n_samples,
        "kind": info.kind,
        "format": info.format,
    }
    try:
        with workspace.database.session() as session:
            evaluation = EvaluationRepository(session, tenant_id).create(
                evaluation_id,
                calibration_id=row.id,
                name=name,
                labelled=info.labelled,
                data=data,
                artifacts=[artifact],
            )
    except BaseException:
        workspace.artifacts.delete([key])
        raise
    workspace.doorbell.release()
    return evaluation


def run_evaluation(
    workspace: Workspace, queue: JobQueue, job: ClaimedJob, *, check: Callable[[], None]
) -> None:
    """Judge a claimed further set by the tables of its calibration and publish what was found.

    Raises
    ------
    JobCancelled, LeaseLost, ServiceError
        As `service.operations.run_calibration.run_calibration`.
    """
    progress = JobProgress(queue, job, check)
    with workspace.database.reading() as session:
        calibration = CalibrationRepository(session, job.tenant_id).get(job.calibration_id)
        evaluation = EvaluationRepository(session, job.tenant_id).by_id(job.id)
        rows = tables_of(session, job.tenant_id, job.calibration_id)
    known = load_records(workspace, calibration, "records")
    if known is None:
        raise RuntimeError(f"calibration {calibration.id} lacks its records")
    further = record_set(
        workspace,
        calibration,
        evaluation.artifacts[0],
        progress,
        location=LOCATION,
        labels_required=False,
    )
    progress.say("judge", 0, 1, now=True)
    config = cast("dict[str, Any]", calibration.config)
    served = {int(k): measure for k, measure in (calibration.serve or {}).items()}
    result = judge_further_set(
        {k: {row.measure: core_table(row) for row in rows if row.k == k} for k in served},
        known,
        further,
        served=served,
        labelled=evaluation.labelled,
        n_classes=len(config["classes"]),
        levels=sorted({*OOD_LEVELS, config["ood"]["level"]}),
        seed=config["seed"],
    )
    plain = as_plain(result)
    if evaluation.labelled:
        plain["mislabelled"] = {
            str(row.k): as_plain(
                mislabelled_candidates(
                    further,
                    row.k,
                    row.column,
                    core_table(row),
                    n=MISLABELLED_SHOWN,
                    leave_one_out=False,
                )
            )
            for row in rows
            if row.served
        }
    with kept_records(workspace, calibration.id, {"evaluation_records": further}) as artifacts:
        queue.publish(job, rows=[], artifacts=artifacts, result=plain)


def get_evaluation(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, name: str
) -> models.Evaluation:
    """Return one evaluation of a calibration."""
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, tenant_id).find(reference)
        return EvaluationRepository(session, tenant_id).get(row.id, name)


def list_evaluations(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str
) -> Sequence[models.Evaluation]:
    """Return the evaluations of a calibration, oldest first."""
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, tenant_id).find(reference)
        return EvaluationRepository(session, tenant_id).of_calibration(row.id)


def cancel_evaluation(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, name: str
) -> models.Evaluation:
    """Ask a queued or running evaluation to stop."""
    with workspace.database.session() as session:
        row = CalibrationRepository(session, tenant_id).find(reference)
        return EvaluationRepository(session, tenant_id).request_cancel(row.id, name)


def delete_evaluation(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, name: str
) -> None:
    """Delete a finished evaluation and its files."""
    with workspace.database.session() as session:
        row = CalibrationRepository(session, tenant_id).find(reference)
        keys = EvaluationRepository(session, tenant_id).delete(row.id, name)
    workspace.artifacts.delete(keys)


def _suits(
    workspace: Workspace, tenant_id: uuid.UUID, row: models.Calibration, dataset: Dataset
) -> None:
    """Refuse a set of another kind, and one whose first rows the model cannot take."""
    expected = cast("dict[str, Any]", row.data)["kind"]
    if dataset.info.kind != expected:
        raise InvalidDataset.at(
            LOCATION, f"holds {dataset.info.kind} where the calibration set held {expected}"
        )
    trial = next(iter(dataset.batches(TRIAL_ROWS)))
    served = load_served(workspace, tenant_id, str(row.id))
    if served.onnx_model is not None:
        onnx_model = served.onnx_model
        workspace.runners.predict(
            onnx_model.files, onnx_model.resolved, trial.arrays, location=LOCATION
        )
    elif dataset.info.n_classes != len(served.class_names):
        raise InvalidDataset.at(
            f"{LOCATION}.{expected}",
            f"expected {len(served.class_names)} classes as in the calibration set, "
            f"got {dataset.info.n_classes}",
        )
    if row.onnx_model is not None:
        limit = workspace.limits.max_row_passes
        check_further_budget(row.onnx_model, dataset.info.n_samples, limit=limit)
