"""Findings and notes of a calibration on the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

# By code: the option or the change that fixes it. Other findings need other data or another model;
# docs/findings.md says which.
REMEDIES = {
    "softmax-twice": "calibrate again with --output-kind probabilities, or export the model "
    "without its second softmax",
    "not-probabilities": "calibrate again with --output NAME, another output of the model",
    "labels-shifted": "add {offset:+d} to the labels of the set",
    "labels-permuted": "calibrate again with --class-map, the model's index of each class, if the "
    "set has class names",
    "inputs-not-scaled": "divide the inputs by 255; for pictures calibrate again with "
    "--preprocessing that has the model's scale",
    "inputs-scaled-twice": "multiply the inputs by 255; for pictures calibrate again with "
    "--preprocessing none",
    "few-samples-for-bins": "howsure refit {reference} --bins auto, or add labelled samples",
}
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
        style = STYLES[finding["level"]]
        text = f"{finding['level']} ({finding['code']}): {finding['message']}"
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
        fix = remedy(finding, reference)
        said = "" if fix is None else f"  to fix it: {fix}\n"
        text = f"{said}  see docs/findings.md#{finding['code']}"
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def remedy(finding: Mapping[str, Any], reference: str) -> str | None:
    """Return what fixes a finding; None if no option does."""
    if finding["figures"].get("bins") == 1:
        return "add labelled samples"  # fewer bins are impossible
    found = REMEDIES.get(finding["code"])
    return found and found.format(reference=reference, **finding["figures"])


def mark(resource: Mapping[str, Any]) -> str:
    """Return the findings of a calibration in a few words; empty if there is none."""
    levels = [finding["level"] for finding in resource["findings"]]
    counts = ((level, levels.count(level)) for level in STYLES)
    return ", ".join(f"{n} {level}{'s' * (n > 1)}" for level, n in counts if n)


def reason(resource: Mapping[str, Any]) -> str:
    """Return why a calibration failed; empty if it did not."""
    error = resource["error"]
    return "" if error is None else f"{error['title']}: {error['detail']}"
