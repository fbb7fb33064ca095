"""Records of the samples of a stored set: reused where stored already, otherwise made now."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import models
from howsure.statistics.label_model.recorded import with_learned
from howsure.statistics.records.records import Int32s, Records
from service.errors import Conflict
from service.jobs.progress import Progress
from service.jobs.recording import ShardTask
from service.runner.model_description import ModelDescription
from service.storage.artifact_keys import JobFiles, first_row, recorded
from service.storage.artifact_rows import NewArtifact, parts_of
from service.storage.fit_results import learned_formulas
from service.storage.shards import StoredRecords, join_records, read_records, usable
from service.workspace import Workspace

# A job may take so many times as long as its trial lets expect, and so much longer.
SLOWER, SLACK_SECONDS = 10, 600.0
MODEL_ROLES = ("model", "model_data")
# For the records of each set: the role of its shards and the key of its size in a calibration.
SHARDS: dict[models.ArtifactRole, models.ArtifactRole] = {
    "records": "calibration",
    "evaluation_records": "evaluation",
}
SAMPLES = {"records": "samples", "evaluation_records": "evaluation_samples"}


@dataclass(frozen=True)
class RecordedSet:
    """The records of a set, their artifacts, its shards and the execution providers that ran."""

    records: Records
    artifacts: list[NewArtifact]
    tasks: list[ShardTask]
    providers: set[str]


def record_set(
    workspace: Workspace,
    calibration: models.Calibration,
    stored: Sequence[models.Artifact],
    role: models.ArtifactRole,
    *,
    files: JobFiles,
    n_samples: int,
    progress: Progress,
) -> RecordedSet | None:
    """Record the samples of a set whose shards are among the stored files; None if there are none.

    Parameters
    ----------
    role
        The role of the records: ``records`` or ``evaluation_records``.
    files
        The keys of the job.

    Raises
    ------
    ServiceError
        If a row breaks a rule, or the ONNX model does not answer.
    """
    shards = [found for found in stored if found.role == SHARDS[role]]
    if not shards:
        return None
    tasks = _tasks(calibration, shards, role, files=files, n_samples=n_samples)
    progress.limit(_most_seconds(workspace, calibration, n_samples))
    made = _record(workspace, tasks, progress)
    progress.limit(math.inf)
    artifacts = [found.artifact(role, position) for position, found in enumerate(made)]
    return RecordedSet(
        records=join_records(workspace.artifacts, artifacts, n_samples=n_samples),
        artifacts=artifacts,
        tasks=tasks,
        providers={found.provider for found in made} - {""},
    )


def _most_seconds(workspace: Workspace, row: models.Calibration, n_samples: int) -> float:
    """Return the longest time that the rows of a set may take."""
    model, most = ModelDescription.of(row), workspace.limits.job_seconds
    ms_per_row = None if model is None else model.all_runs.ms_per_row
    if ms_per_row is None:
        return most
    return min(most, SLACK_SECONDS + SLOWER * n_samples * ms_per_row / 1e3)


def _record(
    workspace: Workspace, tasks: Sequence[ShardTask], progress: Progress
) -> list[StoredRecords]:
    """Return the records of all shards of a set in order; make the missing ones."""
    records = _found(workspace, tasks)
    missing = [task for task in tasks if task.start not in records]
    n_samples = sum(task.n_rows for task in tasks)
    done = n_samples - sum(task.n_rows for task in missing)
    progress.report(tasks[0].location, done, n_samples, now=True)
    for stored in workspace.shards.run(
        missing, on_poll=progress.report_again, on_rows=progress.add
    ):
        records[stored.start] = stored
        if len(records) < len(tasks):
            progress.end_turn()
    return [records[task.start] for task in tasks]


def _found(workspace: Workspace, tasks: Sequence[ShardTask]) -> dict[int, StoredRecords]:
    """Return the usable records of earlier attempts, by first row."""
    wanted = {(task.role, task.start) for task in tasks}
    there = recorded(workspace.artifacts.keys(tasks[0].files.prefix))
    found = {
        start: usable(workspace.artifacts, start, key, digest)
        for (role, start), (key, digest) in there.items()
        if (role, start) in wanted
    }
    return {start: stored for start, stored in found.items() if stored is not None}


def _tasks(
    calibration: models.Calibration,
    shards: Sequence[models.Artifact],
    role: models.ArtifactRole,
    *,
    files: JobFiles,
    n_samples: int,
) -> list[ShardTask]:
    """Return a task for each shard of a set, in order."""
    config, onnx_model = calibration.config, calibration.onnx_model
    model_files = tuple(
        NewArtifact.of(row) for row in calibration.artifacts if row.role in MODEL_ROLES
    )
    ordered = sorted(shards, key=lambda shard: first_row(shard.key))
    starts = [first_row(shard.key) for shard in ordered]
    ends = [*starts[1:], n_samples]
    return [
        ShardTask(
            files=files,
            shard=NewArtifact.of(shard),
            start=start,
            n_rows=end - start,
            location=SHARDS[role],
            role=role,
            model_files=model_files,
            resolved=None if onnx_model is None else onnx_model["resolved"],
            top_k=tuple(config["top_k"]),
            seed=config["seed"],
            tenant=str(calibration.tenant_id),
            decision_threshold=config.get("decision_threshold"),
        )
        for shard, start, end in zip(ordered, starts, ends, strict=True)
    ]


def load_records(
    workspace: Workspace, row: models.Calibration, role: models.ArtifactRole
) -> Records | None:
    """Return the records a calibration keeps under a role, or None where it keeps none.

    Raises
    ------
    ArtifactDamaged
        If they are not what was stored.
    """
    parts = parts_of(row.artifacts, role)
    if not parts:
        return None
    n_samples = row.data[SAMPLES[role]]
    return join_records(workspace.artifacts, parts, n_samples=n_samples)


def load_labels(
    workspace: Workspace, stored: Iterable[models.Artifact], role: models.ArtifactRole
) -> Int32s:
    """Return the labels of a set, shape (n_samples,), from its records among the stored files.

    Without such files it is empty.

    Raises
    ------
    ArtifactDamaged
        As `load_records`.
    """
    parts = parts_of(stored, role)
    found = [read_records(workspace.artifacts, part.key, part.sha256).label for part in parts]
    return np.concatenate([np.empty(0, np.int32), *found])


def judging_parts(
    workspace: Workspace, stored: Iterable[models.Artifact], tables: Iterable[models.BinTable]
) -> Iterator[Records]:
    """Yield the records of an evaluation or further set among the stored files, shard by shard.

    They have the learned measures among these tables.

    Raises
    ------
    ArtifactDamaged
        As `load_records`.
    """
    formulas = learned_formulas(tables)
    for part in parts_of(stored, "evaluation_records"):
        yield with_learned(read_records(workspace.artifacts, part.key, part.sha256), formulas)


def has_records(row: models.Calibration) -> bool:
    """Tell whether a calibration keeps records of its samples."""
    return any(found.role == "records" for found in row.artifacts)


def require_records(row: models.Calibration) -> None:
    """Refuse an imported calibration: it has tables and no samples.

    Raises
    ------
    Conflict
        If it keeps no records.
    """
    if not has_records(row):
        raise Conflict(
            f"Calibration {row.name}@{row.version} was imported from bin tables and keeps no "
            "records of samples, which this needs: ask the service that it was exported from, or "
            "calibrate here."
        )
