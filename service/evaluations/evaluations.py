"""Evaluations of a finished calibration on further sets: start, read, cancel and delete."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

import models
from howsure.statistics.arrays import NONE_OF_THESE
from howsure.statistics.compared_inputs import ComparedInputs
from howsure.statistics.findings import SOFTMAX_TWICE
from howsure.statistics.plain import to_plain
from service.access.audit_log import evaluation_subject, record_success
from service.access.quotas import enforce_storage_quota
from service.calibrations.config import CalibrationConfig
from service.calibrations.findings import UNLIKE_ROWS
from service.calibrations.pass_limits import check_rows
from service.calibrations.seen_inputs import by_input, named_columns
from service.calibrations.start import store_shards
from service.calibrations.upload.class_indices import settle_class_indices
from service.calibrations.upload.features import reading_options
from service.calibrations.upload.set_checks import (
    check_label_range,
    check_no_percentages,
    check_same_score_range,
    check_same_scores,
)
from service.errors import InvalidDataset
from service.http.uploads import SpooledFile
from service.jobs.acceptance import CallContext, accepted, deleted_on_failure
from service.jobs.record_set import require_records
from service.predictions.load_calibration import (
    column_middles,
    column_ranges,
    input_ranges,
    load_served,
)
from service.runner.messages.dataset import PAIRS, Batch
from service.runner.messages.reading import (
    LABELS_ARE_NAMES,
    NAMED_BY_MODEL,
    SCORE_RANGE,
    TAKES_OTHER_COLUMNS,
    TEXTS,
)
from service.runner.messages.set_messages import SetToRead
from service.runner.model_description import ModelDescription
from service.runner.set_reader import UploadedSet
from service.storage.artifact_keys import JobFiles
from service.storage.artifact_rows import NewArtifact
from service.storage.calibrations import CalibrationRepository
from service.storage.evaluations import EvaluationRepository

LOCATION: models.ArtifactRole = "evaluation"

Result = TypeVar("Result")


def start_evaluation(
    ctx: CallContext,
    reference: str,
    *,
    name: str,
    variation: Mapping[str, Any] = MappingProxyType({}),
    uploaded: SpooledFile,
    labels: SpooledFile | None = None,
) -> models.Evaluation:
    """Check a further set against a finished calibration, store it and queue its evaluation.

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
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        row = CalibrationRepository(session, ctx.tenant_id).find_ready(reference)
        # Before the set is read; `add` checks again in its transaction.
        title = f"Calibration {row.name}@{row.version}"
        EvaluationRepository(session, ctx.tenant_id).require_free(row.id, name, title)
    require_records(row)
    evaluation_id = uuid.uuid4()
    files = JobFiles.of(row.id, evaluation_id)
    with deleted_on_failure(ctx.workspace.artifacts, files.prefix):
        asked = SetToRead(
            uploaded.path,
            LOCATION,
            reading_options(
                CalibrationConfig.model_validate(row.config),
                labels,
                kind=row.data["kind"],
                takes_other_columns=row.data.get(TAKES_OTHER_COLUMNS, True),
                score_range=row.data.get(SCORE_RANGE),
                known_texts=row.data.get(TEXTS, {}),
                may_be_none_of_these=row.data["kind"] != PAIRS,
            ),
            labels_required=False,
        )
        limits = ctx.workspace.limits.datasets
        with ctx.workspace.runners.reader.read([asked], limits) as (dataset,):
            info = dataset.info
            _check_compatible(ctx, row, dataset)
            compared = ComparedInputs(
                input_ranges(row),
                named_columns(column_ranges(row), column_middles(row), row.onnx_model),
            )
            kept = _stored(
                ctx,
                files,
                dataset,
                uploaded.label,
                seen=lambda batch: compared.add(by_input(batch.arrays, row.onnx_model)),
            )
        with accepted(ctx, row.id, evaluation=name) as session:
            further = models.Evaluation(
                id=evaluation_id,
                calibration_id=row.id,
                name=name,
                labelled=info.labelled,
                data={
                    "sha256": uploaded.sha256,
                    "samples": info.n_samples,
                    "kind": info.kind,
                    "format": info.format,
                    UNLIKE_ROWS: to_plain(compared.worst),
                    "none_of_these": int(np.count_nonzero(dataset.labels() == NONE_OF_THESE)),
                    NAMED_BY_MODEL: bool(row.data.get(NAMED_BY_MODEL))
                    and info.class_map is not None,
                    LABELS_ARE_NAMES: info.class_map is not None
                    and info.labels_of_named_columns != "positions",
                    **variation,
                },
            )
            return EvaluationRepository(session, ctx.tenant_id).add(further, kept)


def _stored(
    ctx: CallContext,
    files: JobFiles,
    dataset: UploadedSet,
    label: str,
    *,
    seen: Callable[[Batch], None],
) -> list[NewArtifact]:
    shards = store_shards(
        ctx.workspace.artifacts, files, dataset, role=LOCATION, label=label, seen=seen
    )
    return list(enforce_storage_quota(ctx.workspace.database, ctx.tenant_id, ctx.limits, shards))


def _check_compatible(ctx: CallContext, row: models.Calibration, dataset: UploadedSet) -> None:
    """Refuse sets of another kind, rows that the model cannot take, and unknown labels."""
    workspace, info, expected = ctx.workspace, dataset.info, row.data["kind"]
    if info.kind != expected:
        raise InvalidDataset.at(
            LOCATION, f"holds {info.kind} where the calibration set held {expected}"
        )
    check_same_score_range(info, row.data.get(SCORE_RANGE), place=LOCATION)
    if info.kind == "logits":
        check_no_percentages(dataset.trial, place=LOCATION)
        known = any(found["code"] == SOFTMAX_TWICE for found in row.findings)
        check_same_scores(dataset.trial, place=LOCATION, may_be_probabilities=known)
    n_classes = len(row.config["classes"])
    served = load_served(workspace, ctx.tenant_id, str(row.id))
    if served.onnx_model is not None:
        onnx_model = served.onnx_model
        workspace.runners.predict(
            onnx_model.files,
            onnx_model.resolved,
            dataset.trial.arrays,
            location=LOCATION,
            of_rows=info.n_samples,
        )
    elif info.n_classes != n_classes:
        raise InvalidDataset.at(
            f"{LOCATION}.{expected}",
            f"expected {n_classes} classes as in the calibration set, got {info.n_classes}",
        )
    model = ModelDescription.of(row)
    if model is not None:
        limit = workspace.limits.max_row_passes
        check_rows(model, info.n_samples, limit=limit, location=LOCATION)
    settle_class_indices(dataset, LOCATION, CalibrationConfig.model_validate(row.config), None)
    if info.labelled:
        check_label_range(dataset.labels(), LOCATION, n_classes)


def get_evaluation(ctx: CallContext, reference: str, name: str) -> models.Evaluation:
    """Return one evaluation of a calibration."""
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        row = CalibrationRepository(session, ctx.tenant_id).find(reference, with_files=False)
        return EvaluationRepository(session, ctx.tenant_id).get(row.id, name)


def list_evaluations(
    ctx: CallContext, reference: str, *, cursor: str | None, limit: int
) -> tuple[Sequence[models.Evaluation], str | None]:
    """Return a page of a calibration's evaluations, oldest first, and the cursor of the next."""
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        row = CalibrationRepository(session, ctx.tenant_id).find(reference, with_files=False)
        return EvaluationRepository(session, ctx.tenant_id).page(row.id, cursor=cursor, limit=limit)


def cancel_evaluation(ctx: CallContext, reference: str, name: str) -> models.Evaluation:
    """Ask a queued or running evaluation to stop."""
    return _change(ctx, reference, name, EvaluationRepository.request_cancel)


def delete_evaluation(ctx: CallContext, reference: str, name: str) -> None:
    """Delete a finished evaluation."""
    _change(ctx, reference, name, EvaluationRepository.delete)


def _change(
    ctx: CallContext,
    reference: str,
    name: str,
    change: Callable[[EvaluationRepository, uuid.UUID, str], Result],
) -> Result:
    """Change an evaluation of a calibration and record it in the audit log."""
    with ctx.workspace.database.session(ctx.tenant_id) as session:
        row = CalibrationRepository(session, ctx.tenant_id).find(reference, with_files=False)
        result = change(EvaluationRepository(session, ctx.tenant_id), row.id, name)
        record_success(ctx.event, session, evaluation_subject(row.id, name))
    return result


def evaluation_of_id(ctx: CallContext, evaluation_id: uuid.UUID) -> models.Evaluation:
    """Return an evaluation by its id; its name may have been given to another one."""
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        return EvaluationRepository(session, ctx.tenant_id).by_id(evaluation_id)
