"""The help of commands: what it shows, and what it imports."""

import re
from pathlib import Path

import pytest
from howsure_command import howsure
from own_process import run_apart
from running_service import DIGITS

from service.cli import COMMANDS, load_command, summary_of

HEAVY = {"onnx", "onnxruntime", "sqlalchemy", "fastapi", "starlette", "scipy", "uvicorn"}
WITH_SETTINGS = {"pydantic_settings", "structlog"}
FOR_REQUESTS = {"numpy", "httpx", "pydantic"}
# Runs commands, which are separated by `;`, and prints the packages that they import.
PROGRAM = """
import sys
from contextlib import suppress
from service.cli import main
words = " ".join(sys.argv[1:])
for command in words.split(";"):
    sys.argv[1:] = command.split()
    with suppress(SystemExit):
        main()
print()
print(*{name.partition(".")[0] for name in sys.modules})
"""


def imported_by(words: str, folder: Path) -> set[str]:
    return set(run_apart(PROGRAM, *words.split(), folder=folder).splitlines()[-1].split())


@pytest.mark.process
def test_help_imports_little(tmp_path) -> None:
    packages = imported_by("--version ; --help", tmp_path)
    assert not packages & (HEAVY | WITH_SETTINGS | FOR_REQUESTS)


@pytest.mark.process
def test_a_command_with_an_address_imports_no_service(service, tmp_path) -> None:
    commands = (f"predict digits {DIGITS}/request.json", "list", "operating-point digits")
    words = " ; ".join(f"{words} --url {service.url}" for words in commands)
    packages = imported_by(words, tmp_path)
    assert not packages & (HEAVY | WITH_SETTINGS)
    assert packages >= FOR_REQUESTS


def test_help_and_version() -> None:
    for commands in COMMANDS.values():
        for name, target in commands.items():
            paragraph = load_command(name).help.split("\n\n")[0]
            assert " ".join(paragraph.split()) == summary_of(target), name
    assert re.fullmatch(r"howsure \d+\.\d+\.\d+\n", howsure("--version").stdout)
    text = howsure("--help").stdout
    places = [text.index(word) for word in ("Run", "calibrate", "Look", "list", "Manage", "keys")]
    assert places == sorted(places)
    assert text.count("\n howsure ") == 3
    assert howsure("operating-point", "--help").stdout.count("\n howsure operating-point") == 4
    assert "HOWSURE_DATABASE_URL" in howsure("serve", "--help").stdout
    assert "'calibrate'" in howsure("calibrat", "x").stderr, "the nearest name"
    usage = howsure("calibrate", "--help").stdout
    assert "[OPTIONS] [MODEL] CALIBRATION" in usage
    assert "<bool>" not in usage + howsure("keys", "--help").stdout
