"""Where the record of a sample comes from: an ONNX model, or outputs that were uploaded."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from service.core.arrays import as_scores
from service.core.records import Records, build_records
from service.core.tie_keys import tie_keys
from service.datasets import Batch
from service.runner import OnnxModelFiles, RunnerPool

Recorder: TypeAlias = Callable[[Batch, str], Records]


def model_recorder(
    runners: RunnerPool, files: OnnxModelFiles, resolved: Mapping[str, Any], *, seed: int
) -> Recorder:
    """Return what makes records by running an ONNX model in a child process."""

    def record(batch: Batch, location: str) -> Records:
        return runners.record(
            files,
            resolved,
            batch.arrays,
            batch.labels,
            start=batch.start,
            seed=seed,
            location=location,
        )

    return record


def scores_recorder(*, top_k: Sequence[int], seed: int) -> Recorder:
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
        )

    return record
