"""What a dry run found, for the terminal."""

from typing import Any

from rich.console import Console

from service.cli.following import print_findings

KIBI = 1024.0


def print_dry_run(console: Console, tried: dict[str, Any]) -> None:
    """Print findings and warnings of an upload that was tried, and what it would cost."""
    print_findings(console, tried["findings"])
    for warning in tried["warnings"]:
        console.print(f"warning: {warning}", style="yellow", markup=False, soft_wrap=True)
    if not tried["findings"]:
        console.print("Nothing looks wrong.", highlight=False)
    cost = tried["cost"]
    samples = f"{cost['samples']:,} samples"
    if cost["passes"]:
        often = "once" if cost["passes"] == 1 else f"{cost['passes']:,} times each"
        said = f"{samples}, {often} through the model: {cost['rows']:,} rows"
        if cost["seconds"] is not None:
            said += (
                f", about {_duration(cost['seconds'])} on {cost['device']}"
                f" at {cost['ms_per_row']:.3g} ms a sample"
            )
    else:
        said = f"{samples}; no model is run"
    console.print(said, highlight=False, markup=False, soft_wrap=True)
    stored = ", ".join(f"{name} {_bytes(n)}" for name, n in cost["stored_bytes"].items() if n)
    console.print(f"Would store: {stored}. Nothing was kept.", highlight=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    for unit, name in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.2g} seconds"


def _bytes(number: float) -> str:
    for name in ("B", "KiB", "MiB", "GiB"):
        if number < KIBI:
            return f"{number:.3g} {name}" if number < KIBI - 24 else f"{number:.0f} {name}"
        number /= KIBI
    return f"{number:.3g} TiB"
