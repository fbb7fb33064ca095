"""The ``howsure`` command: subcommands in three groups, imported when they run."""

import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from service.cli.plain_help import Command, Commands

# By group and name: the function or `typer.Typer` of the command, as module:attribute, and the
# first line of its help. With them `howsure --help` imports none of the modules.
COMMANDS = {
    "Run": {
        "demo": (
            "demo:demo",
            "Calibrate a digit classifier, predict with it, and print its scores and the address.",
        ),
        "serve": ("serve:serve", "Run the service: HTTP, workers and model processes."),
        "calibrate": (
            "calibrate:calibrate",
            "Calibrate an ONNX classifier or an ensemble, and print its scores.",
        ),
        "predict": (
            "predict:predict",
            "Print the class of each row and the calibrated probability that it is right.",
        ),
        "evaluate": (
            "evaluate:evaluate",
            "Judge a further set by the calibration's tables, and say whether it shifted.",
        ),
    },
    "Look": {
        "list": ("calibrations:list_calibrations", "List calibrations, newest first."),
        "report": (
            "report:report",
            "Print the scores of a calibration, write them to a file, or show them in a browser.",
        ),
        "compare": (
            "compare:compare",
            "Compare the served scores of calibrations with those of the first.",
        ),
        "bins": (
            "calibrations:bins",
            "Print the bin tables of a calibration, or write them to a file.",
        ),
        "export": (
            "calibrations:export",
            "Write the model with its bins to one ONNX file, which works without the service.",
        ),
    },
    "Manage": {
        "refit": (
            "calibrate:refit",
            "Refit a calibration from its records, as the next version of its name.",
        ),
        "promote": (
            "calibrations:promote",
            "Make this version the one that its name means, until another is promoted.",
        ),
        "operating-point": (
            "operating_point:app",
            "Preview, activate or withdraw the threshold up to which answers are accepted.",
        ),
        "import": (
            "calibrations:import_bins",
            "Create a calibration from exported bin tables; its model must be stored here.",
        ),
        "delete": (
            "calibrations:delete",
            "Delete a calibration with its tables and files, or one of its evaluations.",
        ),
        "worker": (
            "serve:worker",
            "Run queued calibrations and evaluations, beside `howsure serve --no-worker`.",
        ),
        "db": (
            "backup:app",
            "The database and the files: schema upgrade, backup, restore and sweep.",
        ),
        "keys": ("access:app", "API keys: access to the service, and scopes."),
        "tenants": ("access:tenants", "Tenants and their limits."),
        "audit": (
            "access:audit",
            "Show the audit log: changes and refused requests of all tenants, newest first.",
        ),
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


class LazyCommands(Commands):
    """The subcommands of ``howsure``: their modules are imported when they run."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(**attributes)
        for group, commands in COMMANDS.items():
            for name, (_, summary) in commands.items():
                self.add_command(Command(name, short_help=summary, rich_help_panel=group))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401 - typer's context
        """Return the name of a subcommand, the subcommand, and its arguments."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and load_command(found.name or ""), rest


def load_command(name: str) -> Any:  # noqa: ANN401 - typer exports no type of its commands
    """Return a subcommand, or a group of them, with all options."""
    target = next(commands[name][0] for commands in COMMANDS.values() if name in commands)
    module, _, attribute = target.partition(":")
    found = getattr(import_module(f"{__name__}.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name)(found)
        found = single
    found.info.cls = Commands
    for registered in found.registered_commands:
        registered.cls = Command
    command = typer.main.get_command(found)
    command.name = name
    return command


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
        from service.cli.failure import sentence_of
        from service.printable import escaped

        sentence = sentence_of(error)
        if sentence is None:
            raise
        typer.secho(escaped(sentence), fg="red", err=True)
        sys.exit(1)
