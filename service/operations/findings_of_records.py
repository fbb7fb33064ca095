"""What looks wrong with a calibration's sets, by the records of all their samples."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

import models
from service.core.findings import FINDINGS, Evidence, Finding, Level, look_for_findings
from service.core.plain_data import as_plain
from service.core.records import Records

DOCS = "docs/findings.md"


def findings_of_records(
    row: models.Calibration, records: Records, evaluation: Records | None
) -> list[Finding]:
    """Return what the records show beside what was found when the calibration was accepted.

    What both tell is told by the records.
    """
    data, config = cast("dict[str, Any]", row.data), cast("dict[str, Any]", row.config)
    onnx_model = cast("dict[str, Any] | None", row.onnx_model)
    kind = data["kind"] if onnx_model is None else onnx_model["resolved"]["output"]["kind"]
    evidence = Evidence(
        records=records,
        class_counts=np.asarray(data["class_counts"], dtype=np.int64),
        source=data["kind"],
        probabilities=kind == "probabilities",
        bins=config["bins"],
        evaluation=evaluation,
    )
    found = {finding.code: finding for finding in stored_findings(row)}
    found |= {finding.code: finding for finding in look_for_findings(evidence)}
    return [found[code] for code in FINDINGS if code in found]


def stored_findings(row: models.Calibration) -> list[Finding]:
    """Return the findings that a row has."""
    return [
        Finding(
            code=str(found["code"]),
            level=cast("Level", found["level"]),
            message=str(found["message"]),
            figures=cast("dict[str, int | float]", found["figures"]),
        )
        for found in row.findings
    ]


def plain_findings(findings: list[Finding]) -> list[dict[str, Any]]:
    """Return findings as a row has them."""
    return [as_plain(finding) for finding in findings]


def with_docs(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's finding with where it is explained."""
    return {**found, "docs": f"{DOCS}#{found['code']}"}
