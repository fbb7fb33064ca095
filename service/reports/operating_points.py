"""Operating points: preview, activate and withdraw a threshold, and list the decisions."""

import re
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import models
from howsure.numbers import confidence, missing_labels, share
from howsure.report.words.learned import assurance
from howsure.statistics.errors_by_class import LabelledSamples
from howsure.statistics.measures.scale import scale_of
from howsure.statistics.operating_point import (
    ChosenThreshold,
    ThresholdChoice,
    choose_threshold,
    effect,
    with_errors_by_class,
)
from howsure.statistics.plain import to_plain
from service.access.audit_log import record_success
from service.errors import Conflict, InvalidInput
from service.jobs.acceptance import CallContext
from service.jobs.record_set import (
    has_records,
    judging_parts,
    require_records,
)
from service.reports.error_samples import record_parts
from service.reports.fitness import reasons_against
from service.storage.calibrations import CalibrationRepository
from service.storage.evaluations import EvaluationRepository
from service.storage.fit_results import read_fitted
from service.storage.operating_points import FIRST, OperatingPointRepository
from service.workspace import Workspace

# Unlike the risks of the configuration, it is no number. It is part of a tensor's name.
NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
EVALUATION: models.ArtifactRole = "evaluation_records"
MAX_AUTHOR_CHARACTERS = 100
MAX_REASON_CHARACTERS = 2000


def preview_operating_point(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    reference: str,
    choice: ThresholdChoice,
    *,
    volume: int | None = None,
) -> tuple[str, list[str], str | None, ChosenThreshold]:
    """Return the measure, the set's design, how a test is known, and what a choice accepts.

    Thresholds, of the choice as well, are on the scale of the measure. With ``volume``, also return
    the expected counts for this number of answers.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, it has not succeeded or has no Top-1 table; or it keeps
        no records, which any choice but a plain threshold needs.
    """
    with workspace.database.reading(tenant_id) as session:
        fitted = read_fitted(session, tenant_id, reference)
    row, table = fitted.row, next((t for t in fitted.served if t.k == 1), None)
    if table is None:
        raise Conflict(
            f"Calibration {row.name}@{row.version} has no Top-1 table, which operating points "
            "need: refit it with 1 in `top_k`."
        )
    if not has_records(row):
        if choice.threshold is None:
            require_records(row)
        return table.measure, [], None, ChosenThreshold(choice.threshold, None, is_tested=False)
    column, level = table.column, row.config["interval"]["level"]
    scale = scale_of(table.measure)
    samples = labelled_samples(workspace, row, column)
    is_judged = any(file.role == EVALUATION for file in row.artifacts)
    judging = _judging(workspace, row, table) if is_judged else None
    found = choose_threshold(
        replace(choice, threshold=scale.of(choice.threshold)),
        samples.ranked,
        level=level,
        volume=volume,
        evaluation=None if judging is None else judging.ranked,
    )
    found = with_errors_by_class(found, samples, judging, level=level)
    return (
        table.measure,
        list(row.data.get("design") or ()),
        assurance(table.measure, "1", row.config) if found.is_tested else None,
        replace(found, threshold=scale.of(found.threshold)),
    )


def save_operating_point(
    ctx: CallContext,
    reference: str,
    *,
    name: str,
    choice: ThresholdChoice,
    author: str,
    reason: str,
) -> tuple[str, models.OperatingPoint]:
    """Activate a threshold: from now on answers say whether they exceed it.

    Return the measure that has the threshold, and the decision.

    Raises
    ------
    NotFound, Conflict
        As for `preview_operating_point`.
    InvalidInput
        If a text is not one printable line, or no threshold meets the requested risk.
    """
    _check_texts(author, reason)
    # A name may mean another version a moment later: all steps below are of this one.
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        reference = str(CalibrationRepository(session, ctx.tenant_id).resolve(reference).id)
    measure, *_, found = preview_operating_point(ctx.workspace, ctx.tenant_id, reference, choice)
    if found.threshold is None and choice.max_risk is not None:
        missing = missing_labels(
            {choice.max_risk: found.labels_missing}, out_of_reach=found.out_of_reach
        )
        message = (
            f"No threshold passes the test for an error rate of at most {share(choice.max_risk)} "
            f"with {confidence(choice.delta)} confidence on this calibration set. {missing}"
        )
        raise InvalidInput.at("max_risk", message)
    threshold = float(np.float32(scale_of(measure).of(found.threshold)))
    seen = found.consequences
    despite = reasons_against(ctx.workspace, ctx.tenant_id, uuid.UUID(reference))
    while True:
        further = _on_further_sets(ctx.workspace, ctx.tenant_id, reference, threshold)
        facts = {"further": dict(further.values()), "activated_despite": list(despite)}
        row = models.OperatingPoint(
            name=name,
            threshold=threshold,
            chosen_by=choice.as_dict(),
            consequences=None if seen is None else to_plain(seen) | facts,
            author=author,
            reason=reason,
        )
        if _keep(ctx, reference, row, counted=list(further)):
            return measure, row


def withdraw_operating_point(
    ctx: CallContext, reference: str, *, author: str, reason: str
) -> models.OperatingPoint:
    """Deactivate the operating point; the history keeps it.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, it has not succeeded, or no operating point is active.
    InvalidInput
        If a text is not one printable line.
    """
    _check_texts(author, reason)
    row = models.OperatingPoint(author=author, reason=reason)
    _keep(ctx, reference, row)
    return row


def operating_points(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, *, before: int | None, limit: int
) -> tuple[str, Sequence[models.OperatingPoint]]:
    """Return the measure that has the thresholds, and decisions as of `history`.

    Raises
    ------
    NotFound
        If there is no such calibration.
    """
    with workspace.database.reading(tenant_id) as session:
        row = CalibrationRepository(session, tenant_id).find(reference, with_files=False)
        points = OperatingPointRepository(session, tenant_id).history(
            row.id, before=before, limit=limit
        )
        return (row.serve or {}).get(FIRST, ""), points


def _keep(
    ctx: CallContext,
    reference: str,
    row: models.OperatingPoint,
    *,
    counted: Sequence[uuid.UUID] | None = None,
) -> bool:
    """Add a decision; return False, and add none, if other further sets than these are judged.

    A set that ends later sees the decision: it waits for the lock.
    """
    with ctx.workspace.database.session(ctx.tenant_id) as session:
        calibrations = CalibrationRepository(session, ctx.tenant_id)
        # Locked, so that two decisions do not get the same number.
        found = calibrations.lock_ready(calibrations.find(reference, with_files=False).id)
        row.calibration_id = found.id
        points = OperatingPointRepository(session, ctx.tenant_id)
        if row.threshold is None and not points.active([found.id]):
            raise Conflict(
                f"Calibration {found.name}@{found.version} has no active operating point."
            )
        set_ids = EvaluationRepository(session, ctx.tenant_id).judged_ids(found.id)
        if counted is not None and counted != set_ids:
            return False
        points.add(row)
        record_success(ctx.event, session, found.id)
    return True


def labelled_samples(workspace: Workspace, row: models.Calibration, column: str) -> LabelledSamples:
    """Return all samples by ascending uncertainty of Top-1, which makes later sorts fast.

    It reads shard by shard, because the whole records are about forty times as large.
    """
    return workspace.labelled.get_or_load(
        (row.id, "records"),
        lambda: LabelledSamples.of(record_parts(workspace.artifacts, row), column),
    )


def _judging(
    workspace: Workspace, judged: models.Calibration | models.Evaluation, table: models.BinTable
) -> LabelledSamples:
    """Return the samples of the evaluation set of a calibration, or of a further set."""
    return workspace.labelled.get_or_load(
        (judged.id, EVALUATION),
        lambda: LabelledSamples.of(
            judging_parts(workspace, judged.artifacts, [table]), table.column
        ),
    )


def _on_further_sets(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, threshold: float
) -> dict[uuid.UUID, tuple[str, dict[str, Any]]]:
    """Return the name of each judged further set, oldest first, and what a threshold accepts."""
    with workspace.database.reading(tenant_id) as session:
        fitted = read_fitted(session, tenant_id, reference)
        row, table = fitted.row, next(t for t in fitted.served if t.k == 1)
        evaluations = EvaluationRepository(session, tenant_id)
        sets = [evaluations.by_id(one) for one in evaluations.judged_ids(row.id)]
    counted = {}
    for further in sets:
        level = row.config["interval"]["level"]  # imported tables have none, and no further sets
        samples = _judging(workspace, further, table).ranked
        values = samples.values.astype(np.float32, copy=False)
        counts = effect(values, samples.hits, threshold, level, samples.design)
        counted[further.id] = (further.name, to_plain(counts))
    return counted


def _check_texts(author: str, reason: str) -> None:
    for location, text, most in (
        ("author", author, MAX_AUTHOR_CHARACTERS),
        ("reason", reason, MAX_REASON_CHARACTERS),
    ):
        if not (text.strip() and len(text) <= most and text.isprintable()):
            raise InvalidInput.at(
                location, f"expected 1 to {most} printable characters, on one line"
            )
