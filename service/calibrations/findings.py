"""What looks wrong with an upload before its job is queued: its model and its first samples."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

import models
from howsure.statistics.findings import (
    FINDINGS,
    RESCALED_FINDINGS,
    Finding,
    LabelCounts,
    Level,
    RecordedSet,
    RescaledTrial,
    count_labels,
    rescaling_factor,
    run_checks,
)
from howsure.statistics.plain import to_plain
from howsure.statistics.records.records import Records
from service.calibrations.upload import CheckedUpload
from service.errors import FindingRefused, InferenceFailed, InvalidInput, Violation
from service.jobs.recording import scores_recorder
from service.runner.messages.dataset import Batch
from service.runner.model_description import runs_of
from service.workspace import Workspace

MOST_ROWS = 256
MOST_RUNS = 4096  # rows times passes: a look is no calibration
LEAST_ROWS = 32


def findings_at_start(workspace: Workspace, checked: CheckedUpload) -> list[Finding]:
    """Return what the labels and the model itself show, and its answers to other inputs."""
    rows = checked.trial.rows(slice(0, looked_at_rows(checked)))
    rescaled = rescaled_rows(workspace, checked, rows)
    labelled = LabelCounts(class_counts=checked.class_counts, bins=checked.config["bins"])
    known = [*checked.found.findings, *count_labels(labelled)]
    found = {finding.code: finding for finding in known}
    if rescaled is not None:
        evidence = evidence_of(checked, rescaled.as_sent, rescaled)
        seen = (FINDINGS[code](evidence) for code in RESCALED_FINDINGS)
        found = {finding.code: finding for finding in seen if finding is not None} | found
    return [found[code] for code in FINDINGS if code in found]


def evidence_of(
    checked: CheckedUpload, records: Records, rescaled: RescaledTrial | None
) -> RecordedSet:
    """Return what is known of an upload, with the records of some of its samples."""
    info, onnx_model = checked.sets.calibration.info, checked.onnx_model
    kind = info.kind if onnx_model is None else onnx_model["resolved"]["output"]["kind"]
    return RecordedSet(
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


def rescaled_rows(
    workspace: Workspace, checked: CheckedUpload, rows: Batch
) -> RescaledTrial | None:
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
        return RescaledTrial(factor, as_sent, records_of_rows(workspace, checked, other))
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


DOCS = "docs/findings.md"


def findings_of_records(
    row: models.Calibration, records: Records, evaluation: Records | None
) -> list[Finding]:
    """Return what the records show beside what was found when the calibration was accepted.

    What both tell is told by the records.
    """
    data, config = row.data, row.config
    onnx_model = row.onnx_model
    kind = data["kind"] if onnx_model is None else onnx_model["resolved"]["output"]["kind"]
    evidence = RecordedSet(
        records=records,
        class_counts=np.asarray(data["class_counts"], dtype=np.int64),
        source=data["kind"],
        probabilities=kind == "probabilities",
        bins=config["bins"],
        evaluation=evaluation,
    )
    found = {finding.code: finding for finding in stored_findings(row)}
    found |= {finding.code: finding for finding in run_checks(evidence)}
    return [found[code] for code in FINDINGS if code in found]


def stored_findings(row: models.Calibration) -> list[Finding]:
    """Return the findings that a row has."""
    return [
        Finding(
            code=str(found["code"]),
            level=cast("Level", found["level"]),
            message=str(found["message"]),
            figures=found["figures"],
        )
        for found in row.findings
    ]


def plain_findings(findings: list[Finding]) -> list[dict[str, Any]]:
    """Return findings as a row has them."""
    return [to_plain(finding) for finding in findings]


def with_docs(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's finding with where it is explained."""
    return {**found, "docs": f"{DOCS}#{found['code']}"}


def check_strict(findings: Sequence[Finding], strict: bool | Sequence[str]) -> None:  # noqa: FBT001 - as the configuration has it
    """Refuse findings: all warnings if ``strict`` is true, else those whose codes it lists.

    Raises
    ------
    FindingRefused
        Naming each.
    """
    if isinstance(strict, bool):
        refused = [found for found in findings if strict and found.level == "warning"]
    else:
        refused = [found for found in findings if found.code in strict]
    if refused:
        raise FindingRefused(
            " ".join(f"{found.code}: {found.message}" for found in refused),
            [Violation(f"findings.{found.code}", found.message) for found in refused],
        )
