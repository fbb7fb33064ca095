"""``howsure evaluate``: judge a further set by the tables of a finished calibration."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from howsure.client import Calibration, Client
from howsure.client.resources import SetRole
from howsure.numbers import count, percent
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
from service.cli.failure import CommandFailed
from service.cli.further_sets.manifest import read_manifest
from service.cli.report import SHOWN

SERVED, RAW = "served", "raw_softmax"


def evaluate(  # noqa: PLR0913, PLR0917 - what a further set is
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    further_set: Annotated[
        Path,
        typer.Argument(
            metavar="SET",
            help="A further set, labelled or not; a folder of pictures; with --manifest the folder "
            "of the sets.",
            exists=True,
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Name of the set.")] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Labels of a set in .npy, as .npy.", exists=True, dir_okay=False),
    ] = None,
    role: Annotated[
        SetRole,
        typer.Option(
            help="traffic: data that is to come. stress: data made to see how far it may drift; it "
            "does not change the verdict."
        ),
    ] = "traffic",
    type_: Annotated[
        str | None, typer.Option("--type", help="How the samples were changed: rotation.")
    ] = None,
    intensity: Annotated[
        float | None, typer.Option(help="How much they were changed.", min=0.0)
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Evaluate all sets that this file lists (columns file, name, type, intensity, "
            "role, labels) and that are not evaluated yet.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    url: UrlOption = None,
) -> None:
    """Judge a further set by the calibration's tables, and say whether it shifted."""
    if (name is None) == (manifest is None):
        raise CommandFailed("expected either --name of one set, or --manifest of several")
    with service_client(url) as client:
        fitted = client.get(calibration)
        if manifest is not None:
            print_table(_side_by_side(_evaluate_all(client, fitted, manifest, further_set)))
            return
        with job_progress() as show:
            resource = client.evaluate(
                fitted,
                further_set,
                name=name or "",
                labels=labels,
                role=role,
                type=type_,
                intensity=intensity,
                on_progress=show,
                cancel_on_interrupt=True,
            ).resource
    print_table(_table(resource, fitted.reference))
    _say_result(resource)
    is_off = resource["result"].get("outcome") in ("shifted", "worse", "miscalibrated")
    if is_off and role == "traffic" and not resource["result"].get("findings"):
        model = "" if fitted.resource["model"] is None else "MODEL "
        say("First check that the set was prepared and labelled like the calibration set.")
        say("For such data, calibrate on new labelled samples as the next version:")
        say(f"  howsure calibrate {model}NEW_SET --name {fitted.resource['name']}")
    for finding in resource["result"].get("findings", ()):
        fix = remedy_for_further_set(finding, fitted.resource["config"])
        # The name is taken by this evaluation.
        words = ["howsure", "evaluate", fitted.reference, str(further_set), "--name", f"{name}-2"]
        words += [] if labels is None else ["--labels", str(labels)]
        again = ("Then evaluate the set again:", f"  {shlex.join(words)}")
        print_finding(Console(stderr=True), finding, fix, *again)


def _say_result(resource: Mapping[str, Any]) -> None:
    # Later than the wait: it takes long.
    from howsure.report.further_set import AcceptedCounts, CountedEvent
    from howsure.report.further_sets import accepted_in_words
    from howsure.report.plain_parts import typed_part
    from howsure.report.words.methods import best_sentence

    for k, event in resource["result"]["events"].items():
        say(event["sentence"])
        own = event.get("unpromised")
        for one in [*event.get("accepted", ()), *([] if own is None else [own])]:
            say(f"  Top-{k}: {accepted_in_words(typed_part(one, AcceptedCounts))}")
        counted = typed_part(event, CountedEvent)
        if counted.best is not None:
            say(f"  {best_sentence(counted.best, counted.methods)}")


def _evaluate_all(
    client: Client, fitted: Calibration, manifest: Path, folder: Path
) -> list[Mapping[str, Any]]:
    """Evaluate the sets of a manifest that are not yet; return all of them, in its order."""
    listed = read_manifest(manifest, folder)
    finished = {one.name: one for one in client.evaluations(fitted) if one.status == "succeeded"}
    resources = []
    for at, one in enumerate(listed):
        earlier = finished.get(one.name)
        if earlier is not None:
            resources.append(earlier.resource)
            continue
        say(f"{at + 1} of {len(listed)}: {one.name}", Console(stderr=True))
        with job_progress() as show:
            evaluation = client.evaluate(
                fitted,
                one.file,
                name=one.name,
                labels=one.labels,
                role=one.role,
                type=one.type,
                intensity=one.intensity,
                on_progress=show,
                cancel_on_interrupt=True,
            )
        resources.append(evaluation.resource)
    return resources


BETTER = {"served": "served", "unclear": "nobody can tell"}


def _side_by_side(resources: Sequence[Mapping[str, Any]]) -> Table:
    """Return the sets with what is served and the model's own softmax, of the first event."""
    columns = ["type", "intensity", "samples", "right", "Brier served", "raw", "better"]
    columns += ["accepted", "wrong among them"]
    table = table_of("Sets side by side", ("set",), columns)
    for one in resources:
        event = next(iter(one["result"]["events"].values()))
        methods, best = event.get("methods") or {}, event.get("best")
        brier = [methods.get(name, {}).get("scores", {}).get("brier") for name in (SERVED, RAW)]
        accepted = next(iter(event.get("accepted", ())), None)
        counts: list[str] = ["", ""]
        if accepted is not None:
            wrong = accepted["n_errors"] / max(accepted["n_accepted"], 1)
            counts = [percent(accepted["coverage"]), percent(wrong)]
        intensity = "" if one["intensity"] is None else f"{one['intensity']:g}"
        better = "" if best is None else BETTER.get(best["better"], best["method"])
        cells = (one["type"] or "", intensity, count(one["result"]["n_samples"]))
        add_row(
            table,
            one["name"],
            *cells,
            *map(number, (event["accuracy"], *brier)),
            better,
            *counts,
        )
    return table


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
