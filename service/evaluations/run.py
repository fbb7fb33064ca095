"""Run of an evaluation: record a further set and judge it by the calibration's tables."""

from collections.abc import Callable
from typing import Any

from sqlalchemy.orm import Session

import models
from howsure.report.fitted import MISLABELLED_SHOWN
from howsure.report.words.shifts import shift_sentences
from howsure.statistics.accepted import count_accepted
from howsure.statistics.error_samples import mislabelled_candidates
from howsure.statistics.label_model.recorded import with_learned
from howsure.statistics.plain import to_plain
from howsure.statistics.ranking import OOD_LEVELS
from howsure.statistics.records.records import Records
from howsure.statistics.shift.evaluation import evaluate_set
from service.calibrations.findings import findings_of_further_set, findings_of_inputs
from service.jobs.progress import Progress
from service.jobs.queue import ClaimedJob, JobQueue
from service.jobs.record_set import load_records, record_set
from service.storage.artifact_keys import JobFiles
from service.storage.calibrations import CalibrationRepository
from service.storage.evaluations import EvaluationRepository
from service.storage.fit_results import core_table, learned_formulas, read_fitted
from service.storage.operating_points import FIRST, OperatingPointRepository
from service.storage.shards import learned_columns
from service.workspace import Workspace


def run_evaluation(
    workspace: Workspace, queue: JobQueue, job: ClaimedJob, *, check: Callable[[], None]
) -> None:
    """Judge a claimed further set by the tables of its calibration and publish the results.

    Raises
    ------
    JobCancelled, LeaseLost, ServiceError
        As `service.calibrations.run.run_calibration`.
    """
    progress = Progress(queue, job, check)
    with workspace.database.reading(job.tenant_id) as session:
        fitted = read_fitted(session, job.tenant_id, str(job.calibration_id))
        evaluation = EvaluationRepository(session, job.tenant_id).by_id(job.id)
    calibration, rows = fitted.row, fitted.tables
    known = load_records(workspace, calibration, "records")
    if known is None:
        raise RuntimeError(f"calibration {calibration.id} lacks its records")
    recorded = record_set(
        workspace,
        calibration,
        evaluation.artifacts,
        "evaluation_records",
        files=JobFiles.of(calibration.id, evaluation.id),
        n_samples=evaluation.data["samples"],
        progress=progress,
    )
    if recorded is None:
        raise RuntimeError(f"evaluation {evaluation.id} lacks its set")
    progress.report("judge", 0, 1, now=True)
    config = calibration.config
    served = {int(k): measure for k, measure in (calibration.serve or {}).items()}
    formulas = learned_formulas(rows)
    further = with_learned(recorded.records, formulas)
    cross_fitted = learned_columns(workspace.artifacts, calibration)
    refitted = with_learned(known, formulas).uncertainty
    result = evaluate_set(
        {k: {row.measure: core_table(row) for row in rows if row.k == k} for k in served},
        known.with_uncertainty(cross_fitted),
        further,
        served=served,
        labelled=evaluation.labelled,
        n_classes=len(config["classes"]),
        levels=sorted({*OOD_LEVELS, config["ood"]["level"]}),
        seed=config["seed"],
        refitted={name: refitted[name] for name in cross_fitted},
    )
    findings = findings_of_inputs(evaluation.data)
    if evaluation.labelled:
        findings += findings_of_further_set(calibration, known, further, evaluation.data)
    by_event = shift_sentences(result)
    sentences = [*(finding.message for finding in findings), *by_event.values()]
    found = to_plain(result)
    found |= {"findings": to_plain(findings), "sentence": " ".join(sentences)}
    for event, sentence in zip(found["events"].values(), by_event.values(), strict=True):
        event["sentence"] = sentence
    tables = {str(row.k): row for row in rows if row.served and evaluation.labelled}
    for k, row in tables.items():
        found["events"][k]["accepted"] = _accepted(further, row)
    if evaluation.labelled:
        found["mislabelled"] = {k: _mislabelled(further, row) for k, row in tables.items()}

    def count_at_point(session: Session) -> None:
        if FIRST not in tables:
            return
        # An activation waits, or has ended and is seen here: it counts only published sets.
        CalibrationRepository(session, job.tenant_id).lock_ready(calibration.id)
        points = OperatingPointRepository(session, job.tenant_id)
        point = points.active([calibration.id]).get(calibration.id)
        if point is not None:
            _add_point(found["events"][FIRST], further, tables[FIRST], point)

    queue.publish(
        job,
        rows=[],
        artifacts=recorded.artifacts,
        keep_sets=workspace.keep_inputs == "all",
        complete=count_at_point,
        result=found,
    )


def _mislabelled(records: Records, row: models.BinTable) -> list[dict[str, Any]]:
    """Return the samples that are probably mislabelled, by a served table."""
    table, most = core_table(row), MISLABELLED_SHOWN
    found = mislabelled_candidates(records, row.k, row.column, table, n=most, leave_one_out=False)
    return [to_plain(one) for one in found]


def _accepted(records: Records, row: models.BinTable) -> list[dict[str, Any]]:
    """Return the accepted answers at each tested threshold of a table."""
    uncertainty, hits = records.uncertainty[row.column], records.hits(row.k)
    return [
        {"target": found["target"], "threshold": found["threshold"]}
        | to_plain(count_accepted(uncertainty, hits, found["threshold"], records.design))
        for found in row.analysis.get("selective", [])
        if found["threshold"] is not None
    ]


def _add_point(
    event: dict[str, Any], records: Records, row: models.BinTable, point: models.OperatingPoint
) -> None:
    """Add what the active operating point accepts to an event.

    A threshold that was tested is counted already, so it is not added again.
    """
    if point.threshold is None:
        return
    values, hits, by = records.uncertainty[row.column], records.hits(1), point.chosen_by or {}
    counts = to_plain(count_accepted(values, hits, point.threshold, records.design))
    found = {"target": by, "threshold": point.threshold, "operating_point": point.name} | counts
    if "max_risk" not in by:
        event["unpromised"] = found
    elif all(one["threshold"] != point.threshold for one in event["accepted"]):
        event["accepted"].append(found)
