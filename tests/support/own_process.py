"""Runs a script in a process of its own: what it holds is not that of other tests."""

import os
import subprocess
import sys
from pathlib import Path


def run_apart(script: str, *arguments: object, folder: Path) -> str:
    """Return what ``python -c SCRIPT ARGUMENTS`` prints; its temporary folder is ``folder``."""
    here = str(Path(__file__).parent)
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": here, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
