"""``howsure calibrate``: upload a model and a labelled set, wait, print the scores."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from howsure.client.uploads import pack_folder
from service.cli.connection import service_client
from service.cli.console import (
    BinsOption,
    ClassMapOption,
    ConfigOption,
    PreprocessingOption,
    UrlOption,
    job_progress,
    print_warnings,
)
from service.cli.failure import CommandFailed, read_json
from service.cli.report import print_calibration

_EXAMPLES = {
    "--config": '{"bins": 10}',
    "--class-map": '{"cat": 0, "dog": 1}',
    "--preprocessing": '{"resize": 256, "crop": 224}',
}


def config_option(
    text: str | None,
    *,
    bins: str | None,
    preprocessing: str | None = None,
    class_map: str | None = None,
    **shortcuts: str | None,
) -> dict[str, Any]:
    """Return the configuration from JSON or a JSON file, overridden by options.

    ``preprocessing`` is the name of a preset, JSON or a JSON file; ``class_map`` is one of the last
    two.

    Raises
    ------
    CommandFailed
        If the file cannot be read, or it contains no JSON object.
    """
    config = {} if text is None else _json_object(text, "--config")
    if bins is not None:
        config["bins"] = int(bins) if bins.isascii() and bins.isdigit() else bins
    if preprocessing is not None:
        is_name = preprocessing.isidentifier() and not Path(preprocessing).exists()
        config["preprocessing"] = (
            preprocessing if is_name else _json_object(preprocessing, "--preprocessing")
        )
    if class_map is not None:
        config["class_map"] = _json_object(class_map, "--class-map")
    return config | {key: value for key, value in shortcuts.items() if value is not None}


def _json_object(text: str, option: str) -> dict[str, Any]:
    """Return an object from JSON or a JSON file."""
    if not text.lstrip().startswith("{"):
        text = _read(text, option)
    found = read_json(text or "{}", option)
    if not isinstance(found, dict):
        raise CommandFailed(f"{option}: expected a JSON object, such as {_EXAMPLES[option]}")
    return found


def _read(path: str, option: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"{option}: cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise CommandFailed(f"{option}: {path} is not text in UTF-8") from error


@contextmanager
def one_file(path: Path) -> Iterator[Path]:
    """Yield a file unchanged, or a folder packed as one file."""
    if path.is_dir():
        with packed_folder(path) as packed:
            yield packed
    else:
        yield path


@contextmanager
def packed_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary tar file with the files of a folder.

    Raises
    ------
    CommandFailed
        If there are no files, an entry is neither file nor folder, or a file cannot be read.
    """
    with tempfile.NamedTemporaryFile(prefix="howsure-", suffix=".tar") as packed:
        try:
            pack_folder(packed.file, folder)
        except ValueError as error:
            raise CommandFailed(str(error)) from error
        except OSError as error:
            raise CommandFailed(
                f"{folder} cannot be packed: {error.strerror or error}"
                + (f": {error.filename}" if error.filename else "")
            ) from error
        yield Path(packed.name)


KIBI = 1024.0


def print_dry_run(console: Console, tried: dict[str, Any]) -> None:
    """Print findings, warnings and the estimated cost of a dry run."""
    print_warnings(tried, console)
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


def calibrate(  # noqa: PLR0913, PLR0917 - an option each
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
        Path | None,
        typer.Option(help="A second labelled set, used only for scores.", exists=True),
    ] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option(
            help="An ONNX file; repeat it for the members of an ensemble.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    model_data: Annotated[
        list[Path] | None,
        typer.Option(help="File with external weights of the model.", exists=True, dir_okay=False),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Labels in .npy, for a set in .npy.", exists=True, dir_okay=False),
    ] = None,
    evaluation_labels: Annotated[
        Path | None,
        typer.Option(
            help="Labels in .npy, for an evaluation set in .npy.", exists=True, dir_okay=False
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name; versions are counted per name.")] = None,
    bins: BinsOption = None,
    preprocessing: PreprocessingOption = None,
    class_map: ClassMapOption = None,
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
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Calibrate an ONNX classifier or an ensemble, and print its scores."""
    given, calibration = _split(files)
    settings = config_option(
        config, name=name, bins=bins, preprocessing=preprocessing, class_map=class_map
    )
    if strict or strict_about:
        settings["strict"] = strict or strict_about
    upload: dict[str, Any] = {
        "model": [*given, *(model or [])],
        "calibration": calibration,
        "model_data": model_data or [],
        "evaluation": evaluation,
        "labels": labels,
        "evaluation_labels": evaluation_labels,
        "config": settings,
    }
    with service_client(url) as client:
        if dry_run:
            print_dry_run(Console(), client.dry_run(**upload))
            return
        with job_progress() as show:
            made = client.calibrate(**upload, on_progress=show, cancel_on_interrupt=True)
        print_warnings(made.resource)
        print_calibration(Console(), client, made)


def _split(files: list[Path]) -> tuple[list[Path], Path]:
    if any(path.is_dir() for path in files[:-1]):
        raise typer.BadParameter(f"{files[0]} is a folder; the ONNX file comes before the set")
    if len(files) <= 2:  # noqa: PLR2004 - a model and a set
        return files[:-1], files[-1]
    raise typer.BadParameter("expected a model and a calibration set, or only a set with outputs")
