"""The worked numbers of the documents: by hand, and by the code."""

import ast
import doctest
import re
from pathlib import Path

import pytest

from howsure.statistics.bins.intervals import INTERVALS
from howsure.statistics.fit.baselines import BASELINES
from howsure.statistics.measures import MEASURE_NAMES
from howsure.statistics.scores import SCORES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "statistics.md"
REGISTERED = (*MEASURE_NAMES, *INTERVALS, *SCORES, *BASELINES)


def examples(text: str) -> list[doctest.Example]:
    """Return the examples of the fenced blocks; their line numbers are those of the text."""
    outside = re.compile(r"^```pycon\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    kept, end = "", 0
    for block in outside.finditer(text):
        kept += re.sub(r"[^\n]", "", text[end : block.start(1)]) + block[1]
        end = block.end(1)
    return doctest.DocTestParser().get_examples(kept)


def sections(text: str) -> dict[str, str]:
    """Return what stands under each heading that is a name, up to the next heading."""
    return dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize(("name", "least"), [("statistics", len(REGISTERED)), ("calibrator", 10)])
def test_every_example_prints_what_it_says(monkeypatch, name: str, least: int) -> None:
    monkeypatch.chdir(ROOT)
    path = ROOT / "docs" / f"{name}.md"
    text = path.read_text(encoding="utf-8")
    page = doctest.DocTest(examples(text), {}, path.name, str(path), 0, text)
    failures: list[str] = []

    result = doctest.DocTestRunner(verbose=False).run(page, out=failures.append)

    assert result.attempted > least
    assert result.failed == 0, "".join(failures)


def test_every_registered_quantity_has_one_section() -> None:
    headings = re.findall(r"^### `(\w+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(headings) == sorted(REGISTERED)


@pytest.mark.parametrize("name", REGISTERED)
def test_every_section_has_a_number_that_hand_and_service_agree_on(name: str) -> None:
    section = sections(PAGE.read_text(encoding="utf-8"))[name]
    shown = [found for found in examples(section) if found.source.startswith("show(")]

    assert shown, "no worked number"
    for example in shown:
        by_hand, computed = ast.literal_eval(example.want)
        assert by_hand == computed
