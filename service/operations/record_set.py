"""Records of the samples of a stored set: those that are there already, and the rest made now."""

from collections.abc import Sequence
from typing import Any, cast

import models
from service.operations.job_progress import JobProgress
from service.operations.record_files import StoredRecords, usable
from service.operations.record_shard import ShardTask
from service.operations.row_count import RowCount
from service.operations.workspace import Workspace
from service.storage.artifact_rows import NewArtifact
from service.storage.job_files import JobFiles, first_row, recorded

MODEL_ROLES = ("model", "model_data")


def record_set(
    workspace: Workspace, tasks: Sequence[ShardTask], progress: JobProgress
) -> list[StoredRecords]:
    """Return the records of all shards of a set, in its order, made where there are none yet.

    Raises
    ------
    ServiceError
        If a row breaks a rule, or the ONNX model does not answer.
    """
    found = _found(workspace, tasks)
    missing = [task for task in tasks if task.start not in found]
    n_samples = sum(task.n_rows for task in tasks)
    done = n_samples - sum(task.n_rows for task in missing)
    count = RowCount(progress, tasks[0].location, done=done, total=n_samples)
    for stored in workspace.shards.run(missing, beat=count.say, done=count.add):
        found[stored.start] = stored
    return [found[task.start] for task in tasks]


def artifacts_of(tasks: Sequence[ShardTask], stored: Sequence[StoredRecords]) -> list[NewArtifact]:
    """Return what is to become the rows of a set's records."""
    return [
        found.artifact(task.role, position)
        for position, (task, found) in enumerate(zip(tasks, stored, strict=True))
    ]


def _found(workspace: Workspace, tasks: Sequence[ShardTask]) -> dict[int, StoredRecords]:
    """Return the records that an earlier attempt left, if they can be used, by first row."""
    wanted = {(task.role, task.start) for task in tasks}
    there = recorded(workspace.artifacts.keys(tasks[0].files.prefix))
    found = {
        start: usable(workspace.artifacts, start, key, digest)
        for (role, start), (key, digest) in there.items()
        if (role, start) in wanted
    }
    return {start: stored for start, stored in found.items() if stored is not None}


def shard_tasks(
    calibration: models.Calibration,
    shards: Sequence[models.Artifact],
    *,
    files: JobFiles,
    role: models.ArtifactRole,
    location: str,
    n_samples: int,
) -> list[ShardTask]:
    """Return what is to be done for each shard of a set, in its order."""
    config = cast("dict[str, Any]", calibration.config)
    onnx_model = cast("dict[str, Any] | None", calibration.onnx_model)
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
            location=location,
            role=role,
            model_files=model_files,
            resolved=None if onnx_model is None else onnx_model["resolved"],
            top_k=tuple(config["top_k"]),
            seed=config["seed"],
            tenant=str(calibration.tenant_id),
        )
        for shard, start, end in zip(ordered, starts, ends, strict=True)
    ]
