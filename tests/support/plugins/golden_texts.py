"""Golden texts: whole documents that a person reads, kept in ``tests/golden``.

A pytest plugin. ``golden(name, text)`` compares; ``pytest --update-golden`` writes the files anew,
and the difference is read in review. What differs from run to run is replaced by its kind.
"""

import difflib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[2] / "golden"
VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<sha256>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?( ?UTC|Z|\+00:00)?"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "<date>"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "<url>"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-golden``."""
    parser.addoption("--update-golden", action="store_true", help="Write tests/golden anew.")


@pytest.fixture
def golden(pytestconfig: pytest.Config) -> Callable[[str, str], None]:
    """Return a function that compares a text with the golden text of a name."""

    def compare(name: str, text: str) -> None:
        for pattern, kind in VARYING:
            text = pattern.sub(kind, text)
        text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
        path = GOLDEN / name
        if pytestconfig.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        expected = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        lines = difflib.unified_diff(expected, text.splitlines(), "golden", "now", lineterm="")
        difference = "\n".join(lines)
        assert not difference, f"run pytest --update-golden if this is meant:\n{difference}"

    return compare
