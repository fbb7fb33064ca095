"""Files for deployments name existing commands, settings, services and profiles."""

import json
import re
import shlex
from importlib.metadata import entry_points

import click
import pytest
import typer
from deployment_files import COMPOSE, DEPLOYMENTS, DOCKERFILE, FILES, PAGE, SERVICES, container

from service.cli import app
from service.settings import Settings

SETTINGS = {f"HOWSURE_{name.upper()}" for name in Settings.model_fields}
# What the command line reads beside the settings.
SETTINGS_OF_COMMANDS = {"HOWSURE_API_KEY", "HOWSURE_URL"}
# Typer has a click of its own, Dask's commands have the other one.
USAGE_ERRORS = (click.UsageError, typer.BadParameter.__base__)


def commands_of_page(text: str) -> list[list[str]]:
    """Return the commands of a page's shell blocks, without the variables set before them."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    commands = []
    for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
        words = shlex.split(re.sub(r"^(?:[A-Z][A-Z0-9_]*=\S+\s+)+|&$", "", line), comments=True)
        if words:
            commands.append(words)
    return commands


PAGE_COMMANDS = commands_of_page(PAGE)
COMMANDS = [
    *(found["command"] for found in SERVICES.values() if "build" in found),
    json.loads(re.findall(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[0]),
    *(container(deployment)["command"] for deployment in DEPLOYMENTS.values()),
    *PAGE_COMMANDS,
]


def check_command(words: list[str]) -> None:
    """Parse the words of a ``howsure`` or ``dask`` command, without running it."""
    name, *arguments = words
    if name not in ("howsure", "dask"):
        return
    command = typer.main.get_command(app)
    if name == "dask":
        pytest.importorskip("distributed", reason="needs howsure[cluster]")
        name, *arguments = arguments
        command = entry_points(group="dask_cli")[name].load()
    try:
        while hasattr(command, "resolve_command"):
            context = command.context_class(command, info_name=name)
            name, command, arguments = command.resolve_command(context, arguments)
        command.make_context(name, list(arguments))
    except USAGE_ERRORS as error:
        pytest.fail(f"{shlex.join(words)}: {error.format_message()}")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_command_exists(words: list[str]) -> None:
    check_command(words)


def test_the_page_shows_each_way_of_running_it() -> None:
    commands = {" ".join(words[:2]) for words in PAGE_COMMANDS}
    assert commands >= {"howsure serve", "howsure worker", "dask scheduler", "dask worker"}


TEXTS = {"compose": COMPOSE, "Dockerfile": DOCKERFILE, "page": PAGE}
TEXTS |= {path.name: path.read_text("utf-8") for path in FILES}


@pytest.mark.parametrize("name", TEXTS)
def test_each_setting_exists(name: str) -> None:
    named = set(re.findall(r"\bHOWSURE_[A-Z_]*[A-Z]", TEXTS[name]))
    assert named <= SETTINGS | SETTINGS_OF_COMMANDS


@pytest.mark.parametrize("text", [COMPOSE, PAGE], ids=["compose", "page"])
def test_compose_commands_name_services_and_profiles_of_the_file(text: str) -> None:
    profiles = {name for service in SERVICES.values() for name in service.get("profiles", [])}
    assert set(re.findall(r"--profile (\S+)", text)) <= profiles
    assert set(re.findall(r"--scale (\S+)=", text)) <= SERVICES.keys()
