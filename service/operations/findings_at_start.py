"""What looks wrong with an upload before its job is queued: its model and its first samples."""

import numpy as np

from service.core.findings import (
    FINDINGS,
    RESCALED_FINDINGS,
    Evidence,
    Finding,
    Rescaled,
    rescaling_factor,
)
from service.core.records import Records
from service.datasets import Batch
from service.errors import InferenceFailed, InvalidInput
from service.operations.checked_upload import CheckedUpload
from service.operations.model_runs import runs_of
from service.operations.record_shard import scores_recorder
from service.operations.workspace import Workspace
from service.runner.frames import Array

MOST_ROWS = 256
MOST_RUNS = 4096  # rows times passes: a look is no calibration
LEAST_ROWS = 32


def findings_at_start(workspace: Workspace, checked: CheckedUpload) -> list[Finding]:
    """Return what the model itself shows, and what its answers to other inputs do."""
    rescaled = rescaled_rows(workspace, checked)
    found = {finding.code: finding for finding in checked.found.findings}
    if rescaled is not None:
        evidence = evidence_of(checked, rescaled.as_sent, rescaled)
        seen = (FINDINGS[code](evidence) for code in RESCALED_FINDINGS)
        found = {finding.code: finding for finding in seen if finding is not None} | found
    return [found[code] for code in FINDINGS if code in found]


def evidence_of(checked: CheckedUpload, records: Records, rescaled: Rescaled | None) -> Evidence:
    """Return what is known of an upload, with the records of its first samples."""
    info, onnx_model = checked.sets.calibration.info, checked.onnx_model
    kind = info.kind if onnx_model is None else onnx_model["resolved"]["output"]["kind"]
    return Evidence(
        records=records,
        class_counts=checked.class_counts,
        source=info.kind,
        probabilities=kind == "probabilities",
        bins=checked.config["bins"],
        rescaled=rescaled,
    )


def first_records(workspace: Workspace, checked: CheckedUpload) -> Records:
    """Return the records of the first samples: 256, and fewer where each takes many passes."""
    rows = first_rows(checked)
    if checked.onnx_model is None:
        record = scores_recorder(top_k=checked.config["top_k"], seed=checked.config["seed"])
        return record(rows)
    return _records(workspace, checked, rows.arrays, rows)


def rescaled_rows(workspace: Workspace, checked: CheckedUpload) -> Rescaled | None:
    """Run the model on the first samples as they are and on another scale, if they look like it.

    Pictures have a scale of their own, and several inputs may have several: both are left alone, as
    is a model that does not answer to the other scale.
    """
    rows = first_rows(checked)
    if checked.onnx_model is None or checked.config["preprocessing"] or len(rows.arrays) != 1:
        return None
    ((name, inputs),) = rows.arrays.items()
    factor = rescaling_factor(inputs)
    if factor is None:
        return None
    # In float64: what divides or multiplies exactly gives the whole numbers that some models take.
    other = {name: (inputs.astype(np.float64) * factor).astype(np.float32)}
    try:
        as_sent = _records(workspace, checked, rows.arrays, rows)
        return Rescaled(factor, as_sent, _records(workspace, checked, other, rows))
    except (InvalidInput, InferenceFailed):
        return None


def first_rows(checked: CheckedUpload) -> Batch:
    """Return the first samples that a look is taken at."""
    n_rows = MOST_ROWS
    if checked.onnx_model is not None:
        measures = [plan["measure"] for plan in checked.onnx_model["resolved"].get("passes", [])]
        passes = runs_of(checked.onnx_model, measures).passes
        n_rows = max(LEAST_ROWS, min(MOST_ROWS, MOST_RUNS // passes))
    trial = checked.trial
    return Batch(
        start=0,
        arrays={name: array[:n_rows] for name, array in trial.arrays.items()},
        labels=trial.labels[:n_rows],
        supplied={name: values[:n_rows] for name, values in trial.supplied.items()},
    )


def _records(
    workspace: Workspace, checked: CheckedUpload, inputs: dict[str, Array], rows: Batch
) -> Records:
    if checked.found.files is None or checked.onnx_model is None:
        raise RuntimeError("there is no model to run")
    records = workspace.runners.record(
        checked.found.files,
        checked.onnx_model["resolved"],
        inputs,
        rows.labels,
        seed=checked.config["seed"],
    )
    return records.with_supplied(rows.supplied)
