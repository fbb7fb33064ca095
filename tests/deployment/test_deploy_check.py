"""The check of the compose file says what it needs."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "docker" / "deploy_check.py"


@pytest.mark.process
def test_without_an_engine_that_answers_it_is_skipped(tmp_path: Path) -> None:
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
    assert done.stdout.startswith("deploy-check skipped: ")
    assert done.stderr == ""
