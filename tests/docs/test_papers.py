"""The tables of docs/papers.md are those that `howsure study` makes."""

import re
from collections.abc import Sequence
from pathlib import Path
from runpy import run_path

import pytest
from howsure_command import howsure

from service.cli.studies.registry import STUDIES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "papers.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d+\.\d+")


def test_every_study_is_described() -> None:
    rows = re.findall(r"^\| (`[a-z].*?) \|", PAGE.partition("## Examples")[0], re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row)} == {*STUDIES}


@pytest.mark.slow
def test_committed_tables_are_what_the_studies_make(tmp_path: Path) -> None:
    script = run_path(str(DOCS / "make_papers.py"))

    def run(words: Sequence[str]) -> str:
        done = howsure(*words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    made = script["with_tables"](PAGE, script["study_tables"](run, tmp_path))
    assert NUMBER.sub("#", made) == NUMBER.sub("#", PAGE)
    # Another machine's rounding may move a sample over an edge of a bin.
    numbers, committed = ([float(n) for n in NUMBER.findall(text)] for text in (made, PAGE))
    assert numbers == pytest.approx(committed, rel=0.02, abs=0.002)
