"""Following a job until it ends."""

import time
from typing import Any

import httpx
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from service.cli.failure import CommandFailed, check

POLL_SECONDS = 0.1
# Below so many a second digits behind the point tell something.
SLOW = 10.0
FINISHED = {"succeeded", "failed", "cancelled"}


def follow(client: httpx.Client, address: str, resource: dict[str, Any]) -> dict[str, Any]:
    """Show progress until the job at ``address`` ends, and return its resource; Ctrl-C cancels it.

    Raises
    ------
    CommandFailed
        If it does not succeed.
    """
    try:
        resource = _poll(client, address, resource)
    except KeyboardInterrupt:
        client.post(f"{address}/cancel")
        raise
    if resource["status"] != "succeeded":
        print_warnings(resource)
        error = resource["error"] or {"title": "Cancelled", "detail": "it was asked to stop"}
        raise CommandFailed(f"{error['title']}: {error['detail']}")
    return resource


def print_warnings(resource: dict[str, Any]) -> None:
    """Print findings and warnings of a calibration to standard error; an evaluation has none."""
    console = Console(stderr=True)
    print_findings(console, resource.get("findings", []))
    for warning in resource.get("warnings", []):
        console.print(f"warning: {warning}", style="yellow", markup=False, soft_wrap=True)


def print_findings(console: Console, findings: list[dict[str, Any]]) -> None:
    """Print what looks wrong, with the codes by which ``docs/findings.md`` explains it."""
    for found in findings:
        style = "yellow" if found["level"] == "warning" else "cyan"
        text = f"{found['level']} ({found['code']}): {found['message']}"
        console.print(text, style=style, markup=False, soft_wrap=True)


def _poll(client: httpx.Client, address: str, resource: dict[str, Any]) -> dict[str, Any]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[pace]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(resource["status"], total=None, pace="")
        while resource["status"] not in FINISHED:
            time.sleep(POLL_SECONDS)
            resource = check(client.get(address)).json()
            shown = resource["progress"]
            if shown is not None:
                progress.update(
                    task,
                    description=shown["stage"],
                    completed=shown["done"],
                    total=shown["total"] or None,
                    pace=pace(shown),
                )
    return resource


def pace(progress: dict[str, Any]) -> str:
    """Say how fast the present stage goes and how long it will take, as far as that is known."""
    rate, left = progress.get("rows_per_second"), progress.get("eta_seconds")
    said = [] if rate is None else [f"{rate:,.0f}/s" if rate >= SLOW else f"{rate:.3g}/s"]
    return ", ".join(said if left is None else [*said, f"{_duration(left)} left"])


def _duration(seconds: float) -> str:
    for unit, name in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"
