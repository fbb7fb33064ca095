"""``howsure report`` as files: a page for a browser, and a model card."""

from pathlib import Path

import pytest
from howsure_command import howsure

SCREENS = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}


@pytest.fixture
def browser(tmp_path) -> tuple[Path, str]:
    """Where a browser writes what it was told to open, and its command."""
    seen, program = tmp_path / "seen", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}\n')
    program.chmod(0o700)
    return seen, f"{program} %s"


@pytest.mark.parametrize("named", [None, "other.html"])
def test_it_is_opened_from_a_file(service, tmp_path, browser, named) -> None:
    seen, command = browser
    options = ["--url", service.base_url, *(["-o", named] if named else [])]
    shown = howsure("report", "logits", "--open", *options, folder=tmp_path, BROWSER=command)
    assert shown.returncode == 0, shown.stderr
    path = tmp_path / (named or "logits-1.html")
    assert seen.read_text() == path.as_uri()
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert shown.stdout.strip() == path.name


def test_without_a_screen_it_says_where_it_is(command, tmp_path) -> None:
    path = tmp_path / "kept.html"
    shown = command("report", "logits", "--open", "-o", path, **SCREENS)
    assert (shown.stdout.strip(), shown.stderr) == (str(path), "")
    assert "logits" in path.read_text(encoding="utf-8")
