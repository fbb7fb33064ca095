"""Try an upload: check it, look at some of its samples, say what it would cost, keep nothing."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from service.core.findings import FINDINGS, Finding, look_for_findings
from service.core.records import Records
from service.datasets import Batch, Dataset
from service.datasets.shards import shard_rows
from service.operations.checked_upload import CheckedUpload, check_upload
from service.operations.findings_at_start import (
    evidence_of,
    looked_at_rows,
    records_of_rows,
    rescaled_rows,
)
from service.operations.model_runs import ModelRuns, runs_of
from service.operations.strict_findings import check_strict
from service.operations.uploads import CalibrationUpload
from service.operations.workspace import Workspace

# Rows of a set are no longer told by their numbers here.
LOCATION = "calibration, of samples spread over it"


@dataclass(frozen=True)
class RunCost:
    """What the calibration would take.

    Attributes
    ----------
    samples, rows, passes : int
        Samples of both sets, runs of the whole model for each, and their product.
    ms_per_row : float or None
        Milliseconds of all passes of a sample, as measured on a few of the first.
    seconds : float or None
        Of running the model over all samples on one device; None without a model.
    device : str or None
        On which that was measured.
    stored_bytes : mapping of str to int
        Of the ``model``, of the ``sets`` until the job has ended, and of the ``records``.
    """

    samples: int
    passes: int
    rows: int
    ms_per_row: float | None
    seconds: float | None
    device: str | None
    stored_bytes: Mapping[str, int]


@dataclass(frozen=True)
class DryRun:
    """What an upload turned out to be; the parts are as a calibration's."""

    findings: list[Finding]
    cost: RunCost
    data: Mapping[str, Any]
    onnx_model: Mapping[str, Any] | None
    config: Mapping[str, Any]
    warnings: list[str]


def dry_run(workspace: Workspace, upload: CalibrationUpload) -> DryRun:
    """Check an upload as a calibration would be, down to its last row, and keep nothing.

    Findings are judged on 256 samples spread evenly over the set, or fewer where each takes many
    passes: a set is often sorted by class. Those that count labels are judged on all of them, and
    those that take every answer wait for the calibration itself.

    Raises
    ------
    InvalidInput, InferenceFailed
        As `service.operations.start_calibration.start_calibration`, strict findings included.
    """
    with ExitStack() as stack:
        checked = check_upload(workspace, upload, stack)
        rows, n_bytes = _spread_rows(checked.sets.calibration, looked_at_rows(checked))
        if checked.sets.evaluation is not None:
            n_bytes += _spread_rows(checked.sets.evaluation, 1)[1]
        rescaled = rescaled_rows(workspace, checked, rows)
        records = (
            records_of_rows(workspace, checked, rows, location=LOCATION)
            if rescaled is None
            else rescaled.as_sent
        )
        seen = {found.code: found for found in checked.found.findings}
        looked = look_for_findings(evidence_of(checked, records, rescaled))
        seen |= {found.code: found for found in looked}
        findings = [seen[code] for code in FINDINGS if code in seen]
        check_strict(findings, checked.config["strict"])
        return DryRun(
            findings=findings,
            cost=_cost(workspace, checked, records, n_bytes),
            data=checked.data,
            onnx_model=checked.onnx_model,
            config=checked.config,
            warnings=checked.warnings,
        )


def plain_cost(cost: RunCost) -> dict[str, Any]:
    """Return a cost as plain data."""
    return asdict(cost)


def _spread_rows(dataset: Dataset, n_rows: int) -> tuple[Batch, int]:
    """Read a whole set; return samples spread evenly over it, and the bytes of all."""
    last = dataset.info.n_samples - 1
    index = np.unique(np.linspace(0, last, n_rows).astype(np.int64))
    parts: list[Batch] = []
    n_bytes = 0
    for batch in dataset.batches(shard_rows(dataset.info)):
        arrays = [*batch.arrays.values(), *batch.supplied.values(), batch.labels]
        n_bytes += sum(array.nbytes for array in arrays)
        within = index[(index >= batch.start) & (index < batch.start + len(batch.labels))]
        parts.append(_taken(batch, within - batch.start))
    return _joined(parts), n_bytes


def _taken(batch: Batch, index: np.ndarray[Any, np.dtype[np.int64]]) -> Batch:
    return Batch(
        start=batch.start,
        arrays={name: array[index] for name, array in batch.arrays.items()},
        labels=batch.labels[index],
        supplied={name: values[index] for name, values in batch.supplied.items()},
    )


def _joined(parts: list[Batch]) -> Batch:
    first = parts[0]
    return Batch(
        start=0,
        arrays={n: np.concatenate([part.arrays[n] for part in parts]) for n in first.arrays},
        labels=np.concatenate([part.labels for part in parts]),
        supplied={n: np.concatenate([part.supplied[n] for part in parts]) for n in first.supplied},
    )


def _cost(
    workspace: Workspace, checked: CheckedUpload, records: Records, set_bytes: int
) -> RunCost:
    n, onnx_model = checked.n_samples, checked.onnx_model
    runs = ModelRuns(0, None)
    if onnx_model is not None:
        measures = [plan["measure"] for plan in onnx_model["resolved"].get("passes", [])]
        runs = runs_of(onnx_model, measures)
    a_record = sum(array.nbytes for array in records.to_arrays().values()) / records.n_samples
    upload = checked.upload
    files = [file.path.stat().st_size for file in (*upload.onnx_models, *upload.companions)]
    return RunCost(
        samples=n,
        passes=runs.passes,
        rows=n * runs.passes,
        ms_per_row=runs.ms_per_row,
        seconds=None if runs.ms_per_row is None else n * runs.ms_per_row / 1e3,
        device=None if onnx_model is None else workspace.runners.device().name,
        stored_bytes={"model": sum(files), "sets": set_bytes, "records": round(n * a_record)},
    )
