"""Further sets on a finished calibration: accepted, read, cancelled, deleted."""

import uuid
from collections.abc import Sequence

import models
from service.access.audit_log import AuditEvent, evaluation_subject, record_success
from service.access.quotas import enforce_quotas, enforce_storage_quota
from service.access.rate_limits import NO_LIMITS, TenantLimits
from service.calibrations.config import CalibrationConfig
from service.calibrations.pass_limits import check_further_budget
from service.calibrations.set_checks import check_label_range
from service.calibrations.start import keep_shards
from service.calibrations.upload import asked_reading
from service.calibrations.uploaded_files import UploadedFile
from service.errors import InvalidDataset, OutcomeUnknown
from service.jobs.cleanup import delete_unnamed_files
from service.jobs.record_set import require_records
from service.predictions.load_calibration import load_served
from service.runner.messages.reading import Reading
from service.runner.messages.set_messages import SetToRead
from service.runner.set_reader import UploadedSet
from service.storage.artifact_keys import JobFiles
from service.storage.calibrations import CalibrationRepository
from service.storage.evaluations import EvaluationRepository
from service.workspace import Workspace

LOCATION: models.ArtifactRole = "evaluation"


def start_evaluation(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    reference: str,
    *,
    name: str,
    uploaded: UploadedFile,
    labels: UploadedFile | None = None,
    act: AuditEvent | None = None,
    limits: TenantLimits = NO_LIMITS,
) -> models.Evaluation:
    """Check a further set against a finished calibration, keep it and queue its evaluation.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, it has not succeeded or keeps no records, or the name is
        taken.
    InvalidInput
        If the set breaks a rule, does not suit the calibration, or is too large for its passes.
    JobLimitReached, StorageLimitReached
        If the tenant may have no more of them.
    """
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, tenant_id).find_ready(reference)
        # Before the set is read; `create` looks again in its transaction.
        title = f"Calibration {row.name}@{row.version}"
        EvaluationRepository(session, tenant_id).require_free(row.id, name, title)
    require_records(row)
    evaluation_id = uuid.uuid4()
    files = JobFiles.of(row.id, evaluation_id)
    try:
        asked = SetToRead(uploaded.path, LOCATION, _reading(row, labels), labels_required=False)
        with workspace.runners.read_sets([asked], workspace.limits.datasets) as (dataset,):
            info = dataset.info
            _suits(workspace, tenant_id, row, dataset)
            if info.labelled:
                n_classes = len(row.config["classes"])
                check_label_range(dataset.labels(), LOCATION, n_classes)
            shards = keep_shards(
                workspace.artifacts, files, dataset, role=LOCATION, label=uploaded.label
            )
            kept = list(enforce_storage_quota(workspace.database, tenant_id, limits, shards))
        with workspace.database.session(invalidates_cache=False) as session:
            evaluation = EvaluationRepository(session, tenant_id).create(
                evaluation_id,
                calibration_id=row.id,
                name=name,
                labelled=info.labelled,
                data={
                    "sha256": uploaded.sha256,
                    "samples": info.n_samples,
                    "kind": info.kind,
                    "format": info.format,
                },
                artifacts=kept,
            )
            record_success(act, session, evaluation_subject(row.id, name))
            enforce_quotas(session, tenant_id, limits)
    except OutcomeUnknown:
        # There may be a row that refers to them; if there is none, they are swept.
        raise
    except BaseException:
        workspace.artifacts.delete(workspace.artifacts.keys(files.prefix))
        raise
    workspace.job_available.release()
    return evaluation


def get_evaluation(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, name: str
) -> models.Evaluation:
    """Return one evaluation of a calibration."""
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, tenant_id).find(reference, with_files=False)
        return EvaluationRepository(session, tenant_id).get(row.id, name)


def list_evaluations(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str
) -> Sequence[models.Evaluation]:
    """Return the evaluations of a calibration, oldest first."""
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, tenant_id).find(reference, with_files=False)
        return EvaluationRepository(session, tenant_id).of_calibration(row.id)


def cancel_evaluation(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    reference: str,
    name: str,
    *,
    act: AuditEvent | None = None,
) -> models.Evaluation:
    """Ask a queued or running evaluation to stop."""
    with workspace.database.session() as session:
        row = CalibrationRepository(session, tenant_id).find(reference, with_files=False)
        evaluation = EvaluationRepository(session, tenant_id).request_cancel(row.id, name)
        record_success(act, session, evaluation_subject(row.id, name))
    if evaluation.status == "cancelled":
        delete_unnamed_files(workspace, tenant_id, JobFiles.of(row.id, evaluation.id))
    return evaluation


def delete_evaluation(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    reference: str,
    name: str,
    *,
    act: AuditEvent | None = None,
) -> None:
    """Delete a finished evaluation and its files."""
    with workspace.database.session() as session:
        row = CalibrationRepository(session, tenant_id).find(reference, with_files=False)
        keys = EvaluationRepository(session, tenant_id).delete(row.id, name)
        record_success(act, session, evaluation_subject(row.id, name))
    workspace.artifacts.delete(keys)


def _reading(row: models.Calibration, labels: UploadedFile | None) -> Reading:
    """Return how the set is read: as the calibration's own were."""
    config, data = row.config, row.data
    asked = CalibrationConfig.model_validate(config)
    return asked_reading(asked, labels, kind=data["kind"])


def _suits(
    workspace: Workspace, tenant_id: uuid.UUID, row: models.Calibration, dataset: UploadedSet
) -> None:
    """Refuse a set of another kind, and one whose first rows the model cannot take."""
    expected = row.data["kind"]
    if dataset.info.kind != expected:
        raise InvalidDataset.at(
            LOCATION, f"holds {dataset.info.kind} where the calibration set held {expected}"
        )
    served = load_served(workspace, tenant_id, str(row.id))
    if served.onnx_model is not None:
        onnx_model = served.onnx_model
        workspace.runners.predict(
            onnx_model.files, onnx_model.resolved, dataset.trial.arrays, location=LOCATION
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
