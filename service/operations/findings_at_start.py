"""What looks wrong with an upload before its job is queued: its model and its first samples."""

from dataclasses import replace

import numpy as np

from service.core.findings import (
    FINDINGS,
    RESCALED_FINDINGS,
    Evidence,
    Finding,
    LabelledSet,
    Rescaled,
    count_labels,
    rescaling_factor,
)
from service.core.records import Records
from service.datasets import Batch
from service.errors import InferenceFailed, InvalidInput
from service.operations.checked_upload import CheckedUpload
from service.operations.model_runs import runs_of
from service.operations.record_shard import scores_recorder
from service.operations.workspace import Workspace

MOST_ROWS = 256
MOST_RUNS = 4096  # rows times passes: a look is no calibration
LEAST_ROWS = 32


def findings_at_start(workspace: Workspace, checked: CheckedUpload) -> list[Finding]:
    """Return what the labels and the model itself show, and its answers to other inputs."""
    rows = _first(checked.trial, looked_at_rows(checked))
    rescaled = rescaled_rows(workspace, checked, rows)
    labelled = LabelledSet(class_counts=checked.class_counts, bins=checked.config["bins"])
    known = [*checked.found.findings, *count_labels(labelled)]
    found = {finding.code: finding for finding in known}
    if rescaled is not None:
        evidence = evidence_of(checked, rescaled.as_sent, rescaled)
        seen = (FINDINGS[code](evidence) for code in RESCALED_FINDINGS)
        found = {finding.code: finding for finding in seen if finding is not None} | found
    return [found[code] for code in FINDINGS if code in found]


def evidence_of(checked: CheckedUpload, records: Records, rescaled: Rescaled | None) -> Evidence:
    """Return what is known of an upload, with the records of some of its samples."""
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


def looked_at_rows(checked: CheckedUpload) -> int:
    """Return how many samples a look is taken at: 256, or fewer where each takes many passes."""
    if checked.onnx_model is None:
        return MOST_ROWS
    measures = [plan["measure"] for plan in checked.onnx_model["resolved"].get("passes", [])]
    passes = runs_of(checked.onnx_model, measures).passes
    return max(LEAST_ROWS, min(MOST_ROWS, MOST_RUNS // passes))


def rescaled_rows(workspace: Workspace, checked: CheckedUpload, rows: Batch) -> Rescaled | None:
    """Run the model on samples as they are and on another scale, if they look like it.

    Pictures have a scale of their own, and several inputs may have several: both are left alone, as
    is a model that does not answer to the other scale.
    """
    if checked.onnx_model is None or checked.config["preprocessing"] or len(rows.arrays) != 1:
        return None
    ((name, inputs),) = rows.arrays.items()
    factor = rescaling_factor(inputs)
    if factor is None:
        return None
    # In float64: what divides or multiplies exactly gives the whole numbers that some models take.
    other = replace(rows, arrays={name: (inputs.astype(np.float64) * factor).astype(np.float32)})
    try:
        as_sent = records_of_rows(workspace, checked, rows)
        return Rescaled(factor, as_sent, records_of_rows(workspace, checked, other))
    except (InvalidInput, InferenceFailed):
        return None


def records_of_rows(
    workspace: Workspace, checked: CheckedUpload, rows: Batch, *, location: str = "calibration"
) -> Records:
    """Return the records of some samples, which are called ``location`` in errors."""
    config, files = checked.config, checked.found.files
    if checked.onnx_model is None or files is None:
        return scores_recorder(top_k=config["top_k"], seed=config["seed"])(rows)
    records = workspace.runners.record(
        files,
        checked.onnx_model["resolved"],
        rows.arrays,
        rows.labels,
        seed=config["seed"],
        location=location,
    )
    return records.with_supplied(rows.supplied)


def _first(rows: Batch, n_rows: int) -> Batch:
    return Batch(
        start=0,
        arrays={name: array[:n_rows] for name, array in rows.arrays.items()},
        labels=rows.labels[:n_rows],
        supplied={name: values[:n_rows] for name, values in rows.supplied.items()},
    )
