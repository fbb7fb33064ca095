"""Every deliberate error in the statistics is found by some test."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(1800)
def test_no_deliberate_error_survives():
    command = [sys.executable, "-m", "mutants"]
    done = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
