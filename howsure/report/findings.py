"""Likely problems as reports show them."""

from collections.abc import Iterable
from dataclasses import dataclass

from howsure.report.plain_parts import typed_part
from howsure.statistics.findings.evidence import Finding

DOCS = "docs/findings.md"


@dataclass(frozen=True)
class DocumentedFinding(Finding):
    """What looks wrong with a set or its model, and the figures behind it.

    Attributes
    ----------
    docs : str
        Where it is explained.
    """

    docs: str = ""


def documented(findings: Iterable[Finding]) -> list[DocumentedFinding]:
    """Return findings with the place that explains them."""
    return [DocumentedFinding(**vars(one), docs=f"{DOCS}#{one.code}") for one in findings]


def documented_rows(stored: object) -> list[DocumentedFinding]:
    """Return the same of stored findings."""
    return documented(typed_part(stored, list[Finding]))
