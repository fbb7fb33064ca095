"""NumPy unpickles nothing: ruff, which bans other ways to execute data, has no such rule."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("howsure", "service", "models", "migrations")


def unpickled(source: str) -> list[int]:
    """Return the lines on which NumPy may unpickle."""
    return [
        node.value.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.keyword)
        and node.arg == "allow_pickle"
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]


def test_numpy_unpickles_nowhere() -> None:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            source = path.read_text()
            assert "allow_pickle" not in source or unpickled(source) == [], path
