"""The check of the compose file says what it needs."""

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "docker" / "deploy_check.py"


def test_without_an_engine_it_is_skipped_with_a_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, PROGRAM],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == (
        "deploy-check skipped: no Docker or Podman engine with compose answers\n"
    )
    assert done.stderr == ""


def test_an_engine_that_does_not_answer_counts_as_none(tmp_path: Path) -> None:
    program = tmp_path / "docker-compose"
    program.write_text('#!/bin/sh\n[ "$1" = version ]\n')
    program.chmod(0o755)

    done = subprocess.run(
        [sys.executable, PROGRAM],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.startswith("deploy-check skipped")
