"""Findings that a caller wants no calibration of."""

from collections.abc import Sequence

from service.core.findings import Finding
from service.errors import FindingRefused, Violation


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
