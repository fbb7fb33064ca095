"""``howsure evaluate``: judge a further set by the tables of a finished calibration."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from howsure.remedies import remedy_for_further_set
from service.cli.connection import service_client
from service.cli.console import (
    UrlOption,
    add_row,
    job_progress,
    number,
    print_finding,
    print_table,
    say,
    table_of,
)
from service.cli.report import SHOWN


def evaluate(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    further_set: Annotated[
        Path,
        typer.Argument(
            metavar="SET", help="A further set, labelled or not; a folder of pictures.", exists=True
        ),
    ],
    name: Annotated[str, typer.Option(help="Name of the set.")],
    labels: Annotated[
        Path | None,
        typer.Option(help="Labels of a set in .npy, as .npy.", exists=True, dir_okay=False),
    ] = None,
    url: UrlOption = None,
) -> None:
    """Judge a further set by the calibration's tables, and say whether it shifted."""
    with service_client(url) as client:
        found = client.get(calibration)
        with job_progress() as show:
            resource = client.evaluate(
                found,
                further_set,
                name=name,
                labels=labels,
                on_progress=show,
                cancel_on_interrupt=True,
            ).resource
    print_table(_table(resource, found.reference))
    # Later than the wait: it takes long.
    from howsure.report.further_set import AcceptedCounts
    from howsure.report.further_sets import accepted_in_words
    from howsure.report.plain_parts import typed_part

    for k, event in resource["result"]["events"].items():
        say(event["sentence"])
        own = event.get("unpromised")
        for one in [*event.get("accepted", ()), *([] if own is None else [own])]:
            say(f"  Top-{k}: {accepted_in_words(typed_part(one, AcceptedCounts))}")
    is_off = resource["result"].get("outcome") in ("shifted", "worse", "miscalibrated")
    if is_off and not resource["result"].get("findings"):
        model = "" if found.resource["model"] is None else "MODEL "
        say("First check that the set was prepared and labelled like the calibration set.")
        say("For such data, calibrate on new labelled samples as the next version:")
        say(f"  howsure calibrate {model}NEW_SET --name {found.resource['name']}")
    for finding in resource["result"].get("findings", ()):
        fix = remedy_for_further_set(finding, found.resource["config"])
        # The name is taken by this evaluation.
        words = ["howsure", "evaluate", found.reference, str(further_set), "--name", f"{name}-2"]
        words += [] if labels is None else ["--labels", str(labels)]
        again = ("Then evaluate the set again:", f"  {shlex.join(words)}")
        print_finding(Console(stderr=True), finding, fix, *again)


def _table(resource: Mapping[str, Any], calibration: str) -> Table:
    """Return the scores of the served tables; without labels, the shares they would discard."""
    result = resource["result"]
    kind = "labelled samples" if resource["labelled"] else "samples without labels"
    title = f"{resource['name']}: {result['n_samples']} {kind}, judged by {calibration}"
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
    table = table_of(title, ("event", "measure"), columns)
    for k, values in rows.items():
        add_row(table, f"Top-{k}", result["events"][k]["served"], *map(number, values))
    return table
