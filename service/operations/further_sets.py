"""Further sets on a finished calibration: accepted, read, cancelled, deleted."""

import uuid
from collections.abc import Sequence
from typing import Any, cast

import models
from service.datasets import Dataset, Reading, open_dataset
from service.errors import InvalidDataset, OutcomeUnknown
from service.operations.asked_reading import asked_reading
from service.operations.audit import Act, accept, evaluation_subject
from service.operations.config import CalibrationConfig
from service.operations.job_leftovers import remove_leftovers
from service.operations.keep_set import keep_shards
from service.operations.label_range import check_label_range
from service.operations.load_served import load_served
from service.operations.onnx_model import first_rows
from service.operations.pass_budget import check_further_budget
from service.operations.stored_records import require_records
from service.operations.tenants import NO_LIMITS, TenantLimits
from service.operations.tenants.quotas import hold_to_limits, while_there_is_room
from service.operations.uploads import UploadedFile
from service.operations.workspace import Workspace
from service.storage.calibrations import CalibrationRepository
from service.storage.evaluations import EvaluationRepository
from service.storage.job_files import JobFiles

LOCATION: models.ArtifactRole = "evaluation"


def start_evaluation(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    reference: str,
    *,
    name: str,
    uploaded: UploadedFile,
    labels: UploadedFile | None = None,
    act: Act | None = None,
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
    require_records(row)
    evaluation_id = uuid.uuid4()
    files = JobFiles.of(row.id, evaluation_id)
    try:
        with open_dataset(
            uploaded.path,
            location=LOCATION,
            limits=workspace.limits.datasets,
            labels_required=False,
            reading=_reading(row, labels),
        ) as dataset:
            info = dataset.info
            _suits(workspace, tenant_id, row, dataset)
            if info.labelled:
                n_classes = len(cast("dict[str, Any]", row.config)["classes"])
                check_label_range(dataset.labels(), LOCATION, n_classes)
            shards = keep_shards(
                workspace.artifacts, files, dataset, role=LOCATION, label=uploaded.label
            )
            kept = list(while_there_is_room(workspace.database, tenant_id, limits, shards))
        with workspace.database.session(is_news=False) as session:
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
            accept(act, session, evaluation_subject(row.id, name))
            hold_to_limits(session, tenant_id, limits)
    except OutcomeUnknown:
        # There may be a row that refers to them; if there is none, they are swept.
        raise
    except BaseException:
        workspace.artifacts.delete(workspace.artifacts.keys(files.prefix))
        raise
    workspace.doorbell.release()
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
    act: Act | None = None,
) -> models.Evaluation:
    """Ask a queued or running evaluation to stop."""
    with workspace.database.session() as session:
        row = CalibrationRepository(session, tenant_id).find(reference, with_files=False)
        evaluation = EvaluationRepository(session, tenant_id).request_cancel(row.id, name)
        accept(act, session, evaluation_subject(row.id, name))
    if evaluation.status == "cancelled":
        remove_leftovers(workspace, tenant_id, row.id, evaluation.id)
    return evaluation


def delete_evaluation(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    reference: str,
    name: str,
    *,
    act: Act | None = None,
) -> None:
    """Delete a finished evaluation and its files."""
    with workspace.database.session() as session:
        row = CalibrationRepository(session, tenant_id).find(reference, with_files=False)
        keys = EvaluationRepository(session, tenant_id).delete(row.id, name)
        accept(act, session, evaluation_subject(row.id, name))
    workspace.artifacts.delete(keys)


def _reading(row: models.Calibration, labels: UploadedFile | None) -> Reading:
    """Return how the set is read: as the calibration's own were."""
    config, data = cast("dict[str, Any]", row.config), cast("dict[str, Any]", row.data)
    asked = CalibrationConfig.model_validate(config)
    return asked_reading(asked, labels, kind=data["kind"])


def _suits(
    workspace: Workspace, tenant_id: uuid.UUID, row: models.Calibration, dataset: Dataset
) -> None:
    """Refuse a set of another kind, and one whose first rows the model cannot take."""
    expected = cast("dict[str, Any]", row.data)["kind"]
    if dataset.info.kind != expected:
        raise InvalidDataset.at(
            LOCATION, f"holds {dataset.info.kind} where the calibration set held {expected}"
        )
    trial = first_rows(dataset)
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
