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


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return the picture drawn anew, and what the script printed."""
    output = tmp_path_factory.mktemp("pictures") / "drawn.svg"
    done = subprocess.run(
        [sys.executable, DOCS / "make_pictures.py", "--output", output],
        check=True,
        capture_output=True,
        text=True,
    )
    return output.read_text(encoding="utf-8"), done.stdout


def test_committed_picture_is_what_the_script_draws(drawn: tuple[str, str]) -> None:
    picture, _ = drawn
    committed = (DOCS / "images" / "before_after.svg").read_text(encoding="utf-8")

    assert NUMBER.sub("#", picture) == NUMBER.sub("#", committed)
    # A tenth of a pixel, or of a percent, for another machine's rounding.
    numbers, expected = ([float(n) for n in NUMBER.findall(t)] for t in (picture, committed))
    assert numbers == pytest.approx(expected, abs=0.11)


def test_picture_says_the_numbers_that_the_script_prints(drawn: tuple[str, str]) -> None:
    picture, printed = drawn
    words = "".join(ET.fromstring(picture).itertext())  # noqa: S314 -- our own file

    errors = re.findall(r"ECE (0\.\d+)", printed)
    assert len(errors) == 2
    assert float(errors[1]) < float(errors[0])
    for error in errors:
        assert f"ECE {error}" in words
    for count in re.findall(r"(\d+) answers", printed):
        assert f"{count} answers" in words
