"""Records of the samples of a stored set: by running an ONNX model, or from uploaded outputs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias, cast

import numpy as np

import models
from service.core.arrays import as_scores
from service.core.records import Records, build_records, concatenate
from service.core.tie_keys import tie_keys
from service.datasets import Batch, open_dataset
from service.operations.job_progress import JobProgress
from service.operations.load_served import open_files
from service.operations.retrying import until_possible
from service.operations.workspace import Workspace
from service.runner import OnnxModelFiles, RunnerPool

BATCH_SAMPLES = 1024

Recorder: TypeAlias = Callable[[Batch, str], Records]


def record_set(
    workspace: Workspace,
    calibration: models.Calibration,
    artifact: models.Artifact,
    progress: JobProgress,
    *,
    location: str,
    labels_required: bool = True,
) -> Records:
    """Return the records of all samples of a stored set, in their order.

    Raises
    ------
    ServiceError
        If a row breaks a rule, or the ONNX model does not answer.
    """
    parts: list[Records] = []
    with ExitStack() as opened:
        recorder = _recorder(workspace, calibration, opened, progress.say_again)
        path = opened.enter_context(workspace.artifacts.local_path(artifact.key, artifact.sha256))
        dataset = opened.enter_context(
            open_dataset(
                path,
                location=location,
                limits=workspace.limits.datasets,
                labels_required=labels_required,
            )
        )
        total = dataset.info.n_samples
        progress.say(location, 0, total, now=True)
        for batch in dataset.batches(BATCH_SAMPLES):
            parts.append(recorder(batch, location))
            progress.say(location, batch.start + len(batch.labels), total)
    return concatenate(parts)


def _recorder(
    workspace: Workspace,
    calibration: models.Calibration,
    opened: ExitStack,
    while_waiting: Callable[[], None],
) -> Recorder:
    config = cast("dict[str, Any]", calibration.config)
    if calibration.onnx_model is None:
        return _scores_recorder(top_k=config["top_k"], seed=config["seed"])
    files = open_files(workspace.artifacts, calibration, opened)
    resolved = cast("dict[str, Any]", calibration.onnx_model)["resolved"]
    recorder = _model_recorder(
        workspace.runners, files, resolved, seed=config["seed"], while_waiting=while_waiting
    )
    return until_possible(recorder, while_waiting)


def _model_recorder(
    runners: RunnerPool,
    files: OnnxModelFiles,
    resolved: Mapping[str, Any],
    *,
    seed: int,
    while_waiting: Callable[[], None],
) -> Recorder:
    """Return what makes records by running an ONNX model in a child process."""

    def record(batch: Batch, location: str) -> Records:
        records = runners.record(
            files,
            resolved,
            batch.arrays,
            batch.labels,
            start=batch.start,
            seed=seed,
            location=location,
            while_waiting=while_waiting,
        )
        return records.with_supplied(batch.supplied)

    return record


def _scores_recorder(*, top_k: Sequence[int], seed: int) -> Recorder:
    """Return what makes records from logits or probabilities."""

    def record(batch: Batch, _location: str) -> Records:
        ((kind, values),) = batch.arrays.items()
        scores = values.astype(np.float64)
        if kind == "probabilities":
            with np.errstate(divide="ignore"):
                scores = np.log(scores)
        return build_records(
            as_scores(scores),
            batch.labels,
            tie_keys=tie_keys(values, seed),
            top_k=top_k,
            logits=kind == "logits",
        ).with_supplied(batch.supplied)

    return record
