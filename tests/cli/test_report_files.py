"""``howsure report`` as files: a page for a browser, and a model card."""

from pathlib import Path

import pytest
from howsure_command import howsure
from running_service import DIGITS

SCREENS = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("reports")
    done = howsure("calibrate", DIGITS / "calibration_logits.csv", "--name", "digits", folder=made)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture
def browser(tmp_path) -> tuple[Path, str]:
    """Where a browser writes what it was told to open, and its command."""
    seen, program = tmp_path / "seen", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}\n')
    program.chmod(0o700)
    return seen, f"{program} %s"


@pytest.mark.parametrize("named", [None, "other.html"])
def test_it_is_opened_from_a_file(folder, browser, named) -> None:
    seen, command = browser
    options = () if named is None else ("-o", named)
    shown = howsure("report", "digits", "--open", *options, folder=folder, BROWSER=command)
    assert shown.returncode == 0, shown.stderr
    path = folder / (named or "digits-1.html")
    assert seen.read_text() == path.as_uri()
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert shown.stdout.strip() == path.name


def test_without_a_screen_it_says_where_it_is(folder) -> None:
    shown = howsure("report", "digits", "--open", "-o", "kept.html", folder=folder, **SCREENS)
    assert (shown.returncode, shown.stdout.strip(), shown.stderr) == (0, "kept.html", "")
    assert "digits" in (folder / "kept.html").read_text(encoding="utf-8")


def test_a_browser_shows_no_other_form(folder) -> None:
    refused = howsure("report", "digits", "--open", "--format", "csv", folder=folder)
    assert refused.returncode == 1
    assert "--open shows html, and not csv" in refused.stderr


def test_both_are_printed_too(folder) -> None:
    for form, begins in (("html", "<!doctype html>"), ("model-card", "---\n")):
        shown = howsure("report", "digits", "--format", form, folder=folder)
        assert shown.stdout.startswith(begins), shown.stderr
