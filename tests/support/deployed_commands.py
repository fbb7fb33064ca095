"""Commands and settings that files for deployments name, held against those that there are."""

import re
import shlex
from importlib.metadata import entry_points
from typing import Any

import click
import pytest
import typer

from service.cli import app
from service.settings import Settings

SETTINGS = {f"HOWSURE_{name.upper()}" for name in Settings.model_fields}
# What the command line reads beside the settings.
SETTINGS_OF_COMMANDS = {"HOWSURE_API_KEY", "HOWSURE_URL"}
# Typer has a click of its own, Dask's commands have the other one.
USAGE_ERRORS = (click.UsageError, typer.BadParameter.__base__)
_ASSIGNMENT = re.compile(r"([A-Z][A-Z0-9_]*)=")


def check_command(words: list[str]) -> None:
    """Parse the words of a ``howsure`` or ``dask`` command, without running it."""
    program, *arguments = words
    if program == "howsure":
        _parse(typer.main.get_command(app), program, arguments)
    elif program == "dask":
        pytest.importorskip("distributed", reason="needs howsure[cluster]")
        found = {entry.name: entry for entry in entry_points(group="dask_cli")}
        assert arguments[0] in found, f"dask has no command {arguments[0]}"
        _parse(found[arguments[0]].load(), arguments[0], arguments[1:])


def check_settings(text: str) -> None:
    """Look for every ``HOWSURE_…`` of a text among the settings."""
    named = set(re.findall(r"\bHOWSURE_[A-Z_]*[A-Z]", text))
    assert named <= SETTINGS | SETTINGS_OF_COMMANDS


def commands_of_page(text: str) -> list[list[str]]:
    """Return the commands of a page's shell blocks, without the variables set before them."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    commands = []
    for line in lines:
        words = shlex.split(line, comments=True)
        while words and _ASSIGNMENT.match(words[0]):
            del words[0]
        if words and words[-1] == "&":
            del words[-1]
        if words:
            commands.append(words)
    return commands


def _parse(command: Any, name: str, arguments: list[str]) -> None:
    try:
        while hasattr(command, "resolve_command"):
            context = command.context_class(command, info_name=name)
            name, command, arguments = command.resolve_command(context, arguments)
        command.make_context(name, list(arguments))
    except USAGE_ERRORS as error:
        pytest.fail(f"{name} {shlex.join(arguments)}: {error.format_message()}")
