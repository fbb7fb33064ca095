"""``howsure calibrate`` and ``howsure refit``: fit a calibration, wait, print its scores."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.filesize import decimal

from howsure import numbers
from howsure.calibrate_command import TypedWords, path_word
from howsure.client import Calibration, Client
from howsure.client.uploads import pack_folder
from howsure.shares import percent, percent_with_interval
from service.cli.config_options import ALL_OPTIONS, FIT_OPTIONS, ConfigOption, config_option
from service.cli.connection import service_client
from service.cli.console import (
    UrlOption,
    job_progress,
    print_findings,
    say,
    with_options,
)
from service.cli.failure import CommandFailed
from service.cli.report import print_calibration


@contextmanager
def one_file(path: Path) -> Iterator[Path]:
    """Yield a file unchanged, or a temporary tar file with the files of a folder.

    Raises
    ------
    CommandFailed
        If there are no files, an entry is neither file nor folder, or a file cannot be read.
    """
    if not path.is_dir():
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="howsure-", suffix=".tar") as packed:
        try:
            pack_folder(packed.file, path)
        except ValueError as error:
            raise CommandFailed(str(error)) from error
        except OSError as error:
            raise CommandFailed(
                f"{path} cannot be packed: {error.strerror or error}"
                + (f": {error.filename}" if error.filename else "")
            ) from error
        yield Path(packed.name)


def print_dry_run(tried: dict[str, Any], typed: TypedWords | None = None) -> None:
    """Print the estimated cost and the accuracy of a dry run, then notes and findings."""
    cost = tried["cost"]
    samples = f"{cost['samples']:,} samples"
    if cost["passes"]:
        often = "once" if cost["passes"] == 1 else f"{cost['passes']:,} times each"
        said = f"{samples}, {often} through the model: {cost['rows']:,} rows"
        if cost["seconds"] is not None:
            said += (
                f", about {numbers.seconds(cost['seconds'])} on {cost['device']}"
                f" at {cost['ms_per_row']:.3g} ms a sample"
            )
    else:
        said = f"{samples}; no model is run"
    say(said)
    stored = ", ".join(f"{name} {decimal(n)}" for name, n in cost["stored_bytes"].items() if n)
    say(f"A calibration would store {stored}; this dry run stored nothing.")
    found = tried["accuracy"]
    rate = percent_with_interval(found["value"], found["interval"])
    say(f"Top-1 accuracy on {found['n_samples']:,} samples: {rate}")
    print_findings(tried, Console(), typed=typed)
    if not tried["findings"]:
        more = found["n_samples"] < tried["data"]["samples"]
        rest = " in these samples; the calibration itself examines all" if more else ""
        say(
            f"No known mistake was found{rest}. Is {percent(found['value'])} the accuracy that "
            "your own tests gave?"
        )


def _file(metavar: str, text: str, *, dir_okay: bool = False) -> Any:  # noqa: ANN401 - as typer.Option
    return typer.Option(metavar=metavar, help=text, exists=True, dir_okay=dir_okay)


@with_options(ALL_OPTIONS)
def calibrate(  # noqa: PLR0913, PLR0917 - an option each
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[MODEL] CALIBRATION",
            help="The ONNX file and the labelled set: a file or a folder of pictures. Only the "
            "set if it contains the model's outputs.",
            exists=True,
        ),
    ],
    evaluation: Annotated[
        Path | None, _file("SET", "A second labelled set, used only for scores.", dir_okay=True)
    ] = None,
    model: Annotated[
        list[Path] | None, _file("FILE", "An ONNX file; repeat it for the members of an ensemble.")
    ] = None,
    model_data: Annotated[
        list[Path] | None,
        _file("FILE", "File with external weights of the model; default: those beside the model."),
    ] = None,
    labels: Annotated[Path | None, _file("FILE", "Labels in .npy, for a set in .npy.")] = None,
    evaluation_labels: Annotated[
        Path | None, _file("FILE", "Labels in .npy, for an evaluation set in .npy.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail on any finding of level warning.")
    ] = False,
    strict_about: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="Fail on this finding; repeat it for more."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only check the upload and estimate its cost; store nothing."
        ),
    ] = False,
    url: UrlOption = None,
    config: ConfigOption = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name; versions are counted per name.")
    ] = None,
    **options: Any,  # noqa: ANN401 - one type each
) -> None:
    """Calibrate an ONNX classifier or an ensemble, and print its scores."""
    members, calibration = _split(files)
    settings = config_option(config, **options, name=name, strict=(strict or strict_about) or None)
    upload: dict[str, Any] = {
        "model": [*members, *(model or [])],
        "calibration": calibration,
        "model_data": model_data or None,
        "evaluation": evaluation,
        "labels": labels,
        "evaluation_labels": evaluation_labels,
        "config": settings,
    }
    typed = typed_words(context)
    with service_client(url) as client:
        if dry_run:
            print_dry_run(client.dry_run(**upload), typed)
            return
        with job_progress(typed) as show:
            made = client.calibrate(**upload, on_progress=show, cancel_on_interrupt=True)
        _print_meaning(client, made)
        print_calibration(client, made, typed)


def _print_meaning(client: Client, made: Calibration) -> None:
    """Print which version the name of a new version means."""
    if made.version > 1:
        meant = client.get(made.name)
        verb = "now means" if meant.id == made.id else "still means"
        say(
            f"{made.name} {verb} {meant.reference}; `howsure promote NAME@VERSION` chooses another "
            "version; operating points are those of a version",
            Console(stderr=True),
        )


def typed_words(context: typer.Context) -> TypedWords:
    """Return the words typed for each parameter of the command, by name of the parameter."""
    found = {}
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value, option = context.params[name], parameter.opts[0]
        values = value if isinstance(value, list | tuple) else [value]
        if parameter.param_type_name == "argument":
            found[name] = [path_word(str(one)) for one in values]
        elif value is True:
            found[name] = [option]
        else:
            found[name] = [word for one in values for word in (option, str(one))]
    return found


def _split(files: list[Path]) -> tuple[list[Path], Path]:
    if files[-1].suffix.lower() == ".onnx":
        raise typer.BadParameter(f"{files[-1]} is an ONNX file; the calibration set comes last")
    if any(path.is_dir() for path in files[:-1]):
        raise typer.BadParameter(f"{files[0]} is a folder; the ONNX file comes before the set")
    if len(files) <= 2:  # noqa: PLR2004 - a model and a set
        return files[:-1], files[-1]
    raise typer.BadParameter(
        "expected a model and a calibration set, or only a set with outputs; further models of an "
        "ensemble follow --model"
    )


@with_options(FIT_OPTIONS)
def refit(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    *,
    config: ConfigOption = None,
    url: UrlOption = None,
    **options: Any,  # noqa: ANN401 - one type each
) -> None:
    """Refit a calibration from its records, as the next version of its name."""
    changes = config_option(config, **options)
    with service_client(url) as client:
        queued = client.refit(calibration, config=changes, wait=False)
        with job_progress() as show:
            made = client.wait(queued, on_progress=show, cancel_on_interrupt=True)
        _print_meaning(client, made)
        print_calibration(client, made)
