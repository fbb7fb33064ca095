"""``howsure evaluate``: judge a further set by the tables of a finished calibration."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from service.cli.connection import connect
from service.cli.failure import check
from service.cli.following import follow
from service.cli.options import UrlOption
from service.cli.packed_folder import one_file
from service.cli.references import address_of
from service.cli.wide_console import wide_console

SHOWN = ("ece", "brier", "nll", "auroc", "aurc")


def evaluate(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    further_set: Annotated[
        Path,
        typer.Argument(
            metavar="SET", help="A further set, labelled or not; a folder of pictures.", exists=True
        ),
    ],
    name: Annotated[str, typer.Option(help="What the set is called.")],
    labels: Annotated[
        Path | None,
        typer.Option(help="Labels of a set in .npy, as .npy.", exists=True, dir_okay=False),
    ] = None,
    url: UrlOption = None,
) -> None:
    """Judge a further set by the calibration's tables as they are, and say whether it shifted."""
    with connect(url) as client, ExitStack() as opened:
        # The id, so that a version that becomes the newest meanwhile is not asked instead.
        found = check(client.get(address_of(calibration))).json()
        parts: list[tuple[str, Any]] = [("name", (None, name))]
        for part, path in (("evaluation", further_set), ("evaluation_labels", labels)):
            if path is not None:
                file = opened.enter_context(one_file(path))
                parts.append((part, (path.name, opened.enter_context(file.open("rb")))))
        made = client.post(address_of(found["id"], "evaluations"), files=parts, timeout=None)
        resource = check(made).json()
        resource = follow(client, address_of(found["id"], "evaluations", name), resource)
    console = wide_console()
    console.print(_table(resource, f"{found['name']}@{found['version']}"))
    for event in resource["result"]["events"].values():
        console.print(event["sentence"], markup=False, highlight=False, soft_wrap=True)


def _table(resource: dict[str, Any], calibration: str) -> Table:
    """Return the scores of the served tables; without labels, the shares they would discard."""
    result = resource["result"]
    kind = "labelled samples" if resource["labelled"] else "samples without labels"
    title = f"{resource['name']}: {result['n_samples']} {kind}, judged by {calibration}"
    table = Table(title_justify="left", box=SIMPLE_HEAD, title=title)
    table.add_column("event", no_wrap=True)
    table.add_column("measure", no_wrap=True)
    served = {k: e["measures"][e["served"]] for k, e in result["events"].items()}
    if resource["labelled"]:
        columns = ["right", *SHOWN]
        rows = {
            k: [result["events"][k]["accuracy"], *(found["scores"].get(s) for s in SHOWN)]
            for k, found in served.items()
        }
    else:
        levels = list(next(iter(served.values()))["discarded"])
        columns = [f"discarded at {level}" for level in levels]
        rows = {k: [found["discarded"][at] for at in levels] for k, found in served.items()}
    for column in columns:
        table.add_column(column, justify="right")
    for k, values in rows.items():
        numbers = ["-" if value is None else f"{value:.4f}" for value in values]
        table.add_row(f"Top-{k}", result["events"][k]["served"], *numbers)
    return table
