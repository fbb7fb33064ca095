"""The picture of the README is the one that its script draws."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
DOCS = Path(__file__).parents[2] / "docs"
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def test_committed_picture_is_what_the_script_draws(tmp_path: Path) -> None:
    output = tmp_path / "drawn.svg"
    command = [sys.executable, DOCS / "make_pictures.py", "--output", output]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    picture = output.read_text(encoding="utf-8")
    committed = (DOCS / "images" / "before_after.svg").read_text(encoding="utf-8")
    assert NUMBER.sub("#", picture) == NUMBER.sub("#", committed)
    # A tenth of a pixel, or of a percent, for another machine's rounding.
    numbers, expected = ([float(n) for n in NUMBER.findall(t)] for t in (picture, committed))
    assert numbers == pytest.approx(expected, abs=0.11)
    words = "".join(ET.fromstring(picture).itertext())
    before, after = re.findall(r"ECE (0\.\d+)", printed)
    assert float(after) < float(before)
    assert all(f"ECE {error}" in words for error in (before, after))
