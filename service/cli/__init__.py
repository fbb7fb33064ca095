"""The ``howsure`` command: subcommands in three groups, imported when they run."""

import ast
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from service.cli.plain_help import Command, Commands

# By group and name: the function or `typer.Typer` of the command, as module:attribute.
COMMANDS = {
    "Run": {
        "demo": "demo:demo",
        "serve": "serve:serve",
        "calibrate": "calibrate:calibrate",
        "predict": "predict:predict",
        "evaluate": "further_sets.evaluate:evaluate",
        "study": "studies.study:study",
    },
    "Look": {
        "list": "calibrations:list_calibrations",
        "report": "report:report",
        "compare": "compare:compare",
        "bins": "calibrations:bins",
        "export": "calibrations:export",
    },
    "Manage": {
        "refit": "calibrate:refit",
        "promote": "calibrations:promote",
        "operating-point": "operating_point:operating_point",
        "import": "calibrations:import_bins",
        "delete": "calibrations:delete",
        "worker": "serve:worker",
        "db": "backup:app",
        "keys": "access:app",
        "tenants": "access:tenants",
        "audit": "access:audit",
    },
}
# \b keeps the lines of a paragraph as they are.
EPILOG = """\
Examples:

\b
howsure demo
howsure calibrate model.onnx calibration.npz --name digits
howsure predict digits rows.json

Documentation: docs/getting-started.md, docs/cli.md, and the page /docs of a running service.
"""
# Of a sentence about a failure.
MOST_CHARACTERS = 10_000


class LazyCommands(Commands):
    """The subcommands of ``howsure``: their modules are imported when they run."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(**attributes)
        for group, commands in COMMANDS.items():
            for name in commands:
                self.add_command(Command(name, rich_help_panel=group))

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer exports neither
        """Write the help, with the first line of the help of each subcommand."""
        for commands in COMMANDS.values():
            for name, target in commands.items():
                self.commands[name].short_help = summary_of(target)
        super().format_help(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401 - typer's context
        """Return the name of a subcommand, the subcommand, and its arguments."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and load_command(found.name or ""), rest


def summary_of(target: str) -> str:
    """Return the first line of the help of a command from its source, which is not imported."""
    module, _, attribute = target.partition(":")
    file = Path(__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
    source = file.read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(name=name) if name == attribute:
                return (ast.get_docstring(node) or "").partition("\n")[0]
            case ast.Assign([ast.Name(name)], ast.Call(keywords=options)) if name == attribute:
                (summary,) = (option.value for option in options if option.arg == "help")
                return str(ast.literal_eval(summary))
    raise LookupError(target)


def load_command(name: str) -> Any:  # noqa: ANN401 - typer exports no type of its commands
    """Return a subcommand, or a group of them, with all options."""
    target = next(commands[name] for commands in COMMANDS.values() if name in commands)
    place, _, attribute = target.partition(":")
    module = import_module(f"{__name__}.{place}")
    command = getattr(module, attribute)
    if not isinstance(command, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name, epilog=getattr(module, "EXAMPLES", None))(command)
        command = single
    command.info.cls = Commands
    for registered in command.registered_commands:
        registered.cls = Command
    loaded = typer.main.get_command(command)
    loaded.name = name
    return loaded


app = typer.Typer(
    cls=LazyCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=EPILOG,
)


def _print_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"howsure {version('howsure')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Calibrated probabilities, with intervals, for the answers of an ONNX classifier."""


def main() -> None:
    """Run the command; a failure ends in one sentence and exit status 1."""
    try:
        app()
    except Exception as error:
        # Only now: neither `howsure --help` nor `howsure --version` needs the client.
        from howsure.printable import escaped
        from service.cli.failure import sentence_of

        sentence = sentence_of(error)
        if sentence is None:
            raise
        typer.secho(escaped(sentence[:MOST_CHARACTERS]), fg="red", err=True)
        sys.exit(1)
