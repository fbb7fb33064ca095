"""``howsure study``: make the table of a paper for the user's own model."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from howsure.printable import escaped
from service.cli.config_options import ALL_OPTIONS, FIT_OPTIONS, ConfigOption, config_option
from service.cli.connection import ServiceClient, service_client
from service.cli.console import UrlOption, optional, print_table, say, with_options
from service.cli.failure import CommandFailed
from service.cli.report import write_file
from service.cli.studies.calibrations import (
    RowsOmitted,
    StudyCalibrations,
    StudyData,
    study_calibrations,
    typed_report,
)
from service.cli.studies.registry import STUDIES, Study, names_in_lines
from service.cli.studies.table import (
    TOP_1,
    Format,
    StudyRow,
    StudyTable,
    row_of_model,
    rows_of_methods,
    rows_of_run,
)

EXAMPLES = """\
Examples:

\b
howsure study model.onnx calibration.npz --like oberman-table-2
howsure study a.onnx b.onnx calibration.npz --like ding-table-1
howsure study outputs.npz --like finlay-table-1 --format markdown
howsure study digits --like ovadia-appendix-g
"""
MODEL = ".onnx"
FORMATS: dict[str, Format] = {".csv": "csv", ".md": "markdown", ".json": "json"}
# A study sets the options of the fit itself; `--output` is its file.
STUDY_OPTIONS = {
    name: kind for name, kind in ALL_OPTIONS.items() if name not in {*FIT_OPTIONS, "output"}
} | {"measures": optional("A,B", "More measures with a row each, such as supplied:human.")}


def _file(metavar: str, text: str, *, dir_okay: bool = False) -> Any:  # noqa: ANN401 - as typer.Option
    return typer.Option(metavar=metavar, help=text, exists=True, dir_okay=dir_okay)


@with_options(STUDY_OPTIONS)
def study(  # noqa: PLR0913, PLR0917 - an option each
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL]... SET",
            help="ONNX files and the labelled set, or a set with outputs. A table of models takes "
            "several sets with outputs, too, one for each model. A table of changed sets takes a "
            "calibration that they were evaluated with.",
        ),
    ],
    like: Annotated[
        str, typer.Option(metavar="NAME", help="Table of a paper: see docs/papers.md.")
    ],
    evaluation: Annotated[
        Path | None, _file("SET", "A second labelled set, on which all is scored.", dir_okay=True)
    ] = None,
    labels: Annotated[Path | None, _file("FILE", "Labels in .npy, for a set in .npy.")] = None,
    evaluation_labels: Annotated[
        Path | None, _file("FILE", "Labels in .npy, for an evaluation set in .npy.")
    ] = None,
    output_format: Annotated[
        Literal["table", "csv", "markdown", "json"] | None,
        typer.Option("--format", help="Format; a table by default.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write: .csv, .md or .json; default: print."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the calibrations, which are deleted otherwise.")
    ] = False,
    url: UrlOption = None,
    config: ConfigOption = None,
    **options: Any,  # noqa: ANN401 - one type each
) -> None:
    """Make the table of a paper for your own model, with the calibrations that it needs."""
    chosen = STUDIES.get(like)
    if chosen is None:
        raise CommandFailed(f"there is no study {like!r}; there are:\n{names_in_lines()}")
    settings = config_option(config, **options)
    chosen = chosen.with_measures(settings.pop("measures", ()))
    if chosen.events == (TOP_1,):
        settings["top_k"] = [int(TOP_1)]
    with service_client(url) as client:
        if chosen.rows == "methods":
            table = _of_methods(client, chosen, files)
        else:
            data = [
                replace(
                    one, evaluation=evaluation, labels=labels, evaluation_labels=evaluation_labels
                )
                for one in _data(files, chosen)
            ]
            if len({one.calibration for one in data}) > 1 and (evaluation or labels):
                raise CommandFailed("several sets with outputs share no evaluation set or labels")
            with study_calibrations(client, like, settings, keep=keep) as calibrations:
                make = _by_measure if chosen.rows == "measures" else _by_model
                table = make(calibrations, chosen, data)
    _print(table, output_format, output)


def _data(words: Sequence[str], study: Study) -> list[StudyData]:
    """Return what to calibrate: a model or an ensemble, or each model by itself."""
    files = [Path(word) for word in words]
    for file in files:
        if not file.exists():
            raise CommandFailed(f"there is no file {str(file)!r}")
    models = [file for file in files if file.suffix.lower() == MODEL]
    sets = [file for file in files if file not in models]
    by_model = study.rows == "models"
    if len(sets) != 1 and (models or not (by_model and sets)):
        raise CommandFailed(
            f"expected one labelled set, with ONNX files or with outputs; got {len(sets)} sets "
            f"and {len(models)} ONNX files"
        )
    if by_model and models:
        return [StudyData([model], sets[0]) for model in models]
    return [StudyData(models, one) for one in sets]


def _by_measure(
    calibrations: StudyCalibrations, study: Study, data: Sequence[StudyData]
) -> StudyTable:
    (subject,) = data
    rows: list[StudyRow] = []
    omitted: dict[str, list[str]] = {}
    for at, run in enumerate(study.runs):
        label = ", ".join(map(run.label, run.measures))
        _say_step(at, len(study.runs), label)
        try:
            for bins, report in calibrations.reports(subject, run, study.bins):
                rows += rows_of_run(study, run, report, bins)
        except RowsOmitted as error:
            if at == 0:  # the measures of every model
                raise
            omitted.setdefault(str(error), []).append(label)
    rows.sort(key=lambda row: row.order)
    return StudyTable(study.title, ("event", "bins", "measure"), study.columns, rows, omitted)


def _by_model(
    calibrations: StudyCalibrations, study: Study, data: Sequence[StudyData]
) -> StudyTable:
    (run,) = study.runs
    rows = []
    for at, subject in enumerate(data):
        file = subject.models[0] if subject.models else subject.calibration
        _say_step(at, len(data), file.name)
        for _, report in calibrations.reports(subject, run, study.bins):
            rows.append(row_of_model(study, report, file.stem))
    return StudyTable(study.title, ("model",), study.columns, rows, {})


def _of_methods(client: ServiceClient, study: Study, words: Sequence[str]) -> StudyTable:
    if len(words) != 1:
        raise CommandFailed(f"expected one calibration with evaluated sets; got {len(words)}")
    rows = list(rows_of_methods(typed_report(client, words[0])))
    if not rows:
        raise CommandFailed(
            f"{words[0]} has no labelled set of the role stress with an intensity above 0; see "
            "`howsure evaluate --manifest`"
        )
    return StudyTable(study.title, ("score", "method", "sets"), study.columns, rows, {})


def _say_step(at: int, n_steps: int, label: str) -> None:
    say(f"{at + 1} of {n_steps}: {label}", Console(stderr=True))


def _print(table: StudyTable, output_format: Format | None, output: Path | None) -> None:
    """Print a table, or write it to a file in the format that its name says."""
    by_name = None if output is None else FORMATS.get(output.suffix.lower(), "csv")
    chosen = output_format or by_name or "table"
    if output is not None:
        write_file(output, table.text(chosen).encode())
    elif chosen != "table":
        typer.echo(escaped(table.text(chosen)), nl=False)
        return
    else:
        print_table(table.rich())
    for reason, labels in table.omitted.items():
        say(f"left out {'; '.join(labels)}: {reason}", Console(stderr=True))
