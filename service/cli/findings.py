"""Findings and notes of a calibration on the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from howsure.remedies import Remedy, remedy_of

STYLES = {"warning": "bold yellow", "notice": "cyan"}


def print_findings(
    resource: Mapping[str, Any], console: Console | None = None, *, reference: str = "NAME"
) -> None:
    """Print notes, then notices, then warnings, which should be the last lines.

    They go to standard error by default. ``reference`` is what commands call the calibration.
    """
    console = console or Console(stderr=True)
    for note in resource.get("warnings", []):
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    found = resource.get("findings", [])
    for finding in sorted(found, key=lambda finding: bool(finding["level"] == "warning")):
        fix = remedy_of(finding, resource.get("provenance", resource), reference)
        print_finding(console, finding, fix)


def print_finding(console: Console, finding: Mapping[str, Any], fix: Remedy, *more: str) -> None:
    """Print a finding, its remedy, more lines, and where it is explained."""
    lines = [fix.text, *(f"  {line}" for line in fix.code.splitlines())] if fix.text else []
    lines += [*more, f"see docs/findings.md#{finding['code']}"]
    said = f"{finding['level']} ({finding['code']}): {finding['message']}"
    text = "\n".join([said, *(f"  {line}" for line in lines)])
    style = STYLES[finding["level"]]
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def mark(resource: Mapping[str, Any]) -> str:
    """Return the findings of a calibration in a few words; empty if there is none."""
    levels = [finding["level"] for finding in resource["findings"]]
    counts = ((level, levels.count(level)) for level in STYLES)
    return ", ".join(f"{n} {level}{'s' * (n > 1)}" for level, n in counts if n)


def reason(resource: Mapping[str, Any]) -> str:
    """Return why a calibration failed; empty if it did not."""
    error = resource["error"]
    return "" if error is None else f"{error['title']}: {error['detail']}"
