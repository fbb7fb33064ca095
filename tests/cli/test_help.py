"""The help of commands: what it shows, and what it imports."""

import os
import subprocess
import sys
from typing import get_args

import pytest
from howsure_command import howsure_here
from running_service import DIGITS

from service.calibrations.fit_config import FitConfig
from service.cli import COMMANDS, load_command

HEAVY = {"onnx", "onnxruntime", "sqlalchemy", "fastapi", "starlette", "scipy", "uvicorn"}
WITH_SETTINGS = {"pydantic_settings", "structlog"}
FOR_REQUESTS = {"numpy", "httpx", "pydantic"}
PROGRAM = """
import sys
from service.cli import main
try:
    main()
finally:
    print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


def imported_by(*words: object) -> set[str]:
    """Return the packages that a command has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, words)],
        env=os.environ | {"COLUMNS": "100"},
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_imports_little(word) -> None:
    assert not imported_by(word) & (HEAVY | WITH_SETTINGS | FOR_REQUESTS)


def test_a_command_with_an_address_imports_no_service(service) -> None:
    url = ("--url", service.base_url)
    rows = DIGITS / "request.json"
    for words in (("predict", "digits", rows), ("list",), ("operating-point", "digits")):
        assert not imported_by(*words, *url) & (HEAVY | WITH_SETTINGS)


def test_the_help_of_all_commands_says_what_their_own_help_says() -> None:
    for commands in COMMANDS.values():
        for name, (_, summary) in commands.items():
            said = load_command(name).help.split("\n\n")[0]
            assert " ".join(said.split()) == summary, name


def test_commands_are_in_groups_with_examples() -> None:
    shown = howsure_here("--help").stdout
    places = [shown.index(word) for word in ("Run", "calibrate", "Look", "list", "Manage", "keys")]
    assert places == sorted(places)
    assert shown.count("\n howsure ") == 3
    assert "docs/getting-started.md" in shown


def test_a_misspelt_command_gets_the_nearest_names() -> None:
    assert "'calibrate'" in howsure_here("calibrat", "x").stderr


def test_usage_has_no_braces_and_flags_have_no_type() -> None:
    shown = howsure_here("calibrate", "--help").stdout
    assert "[OPTIONS] [MODEL] CALIBRATION" in shown
    assert "<bool>" not in shown
    assert "<bool>" not in howsure_here("keys", "--help").stdout
    assert "|".join(get_args(FitConfig.model_fields["lookup"].annotation)) in shown
