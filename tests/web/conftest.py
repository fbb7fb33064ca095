from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from web_files import (
    NOT_UNDER_NODE,
    WEB_FILES,
    WebFile,
    make_web_file,
    predict_many_under_node,
    require_node,
)


@pytest.fixture(scope="session")
def file_of() -> Callable[[str], WebFile]:
    """Return what makes a calibrated file, once."""
    return cache(make_web_file)


@pytest.fixture(scope="session")
def answers_under_node(
    file_of: Callable[[str], WebFile], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What Node answers for the rows of each file."""
    require_node()
    folder = tmp_path_factory.mktemp("node")
    names = [name for name in WEB_FILES if name not in NOT_UNDER_NODE]
    jobs = [file_of(name).write(folder / f"{number}") for number, name in enumerate(names)]
    return dict(zip(names, predict_many_under_node(folder, jobs), strict=True))
