"""NumPy unpickles nothing: ruff, which bans other ways to execute data, has no such rule."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAY_UNPICKLE = re.compile(r"allow_pickle(?!=False\b)|[\"']allow_pickle")


def test_numpy_unpickles_nowhere() -> None:
    paths = [path for name in ("howsure", "service") for path in (ROOT / name).rglob("*.py")]
    assert [path for path in paths if MAY_UNPICKLE.search(path.read_text("utf-8"))] == []
