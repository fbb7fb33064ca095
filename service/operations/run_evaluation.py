"""Judge a claimed further set by the tables of its calibration, and publish what was found."""

from collections.abc import Callable
from typing import Any, cast

import models
from service.core.further_set import judge_further_set
from service.core.mislabelled import mislabelled_candidates
from service.core.out_of_distribution import OOD_LEVELS
from service.core.plain_data import as_plain
from service.operations.fitted_rows import MISLABELLED_SHOWN
from service.operations.job_progress import JobProgress
from service.operations.record_files import join_records
from service.operations.record_set import artifacts_of, record_set, shard_tasks
from service.operations.stored_records import load_records
from service.operations.workspace import Workspace
from service.storage.bin_tables import core_table, tables_of
from service.storage.calibrations import CalibrationRepository
from service.storage.evaluations import EvaluationRepository
from service.storage.job_files import JobFiles
from service.storage.job_queue import ClaimedJob, JobQueue

RECORDS: models.ArtifactRole = "evaluation_records"


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
    n_samples = cast("dict[str, Any]", evaluation.data)["samples"]
    tasks = shard_tasks(
        calibration,
        [found for found in evaluation.artifacts if found.role == "evaluation"],
        files=JobFiles.of(calibration.id, evaluation.id),
        role=RECORDS,
        location="evaluation",
        n_samples=n_samples,
    )
    artifacts = artifacts_of(tasks, record_set(workspace, tasks, progress))
    further = join_records(workspace.artifacts, artifacts, n_samples=n_samples)
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
    queue.publish(
        job,
        rows=[],
        artifacts=artifacts,
        keep_sets=workspace.keep_inputs == "all",
        result=plain,
    )
