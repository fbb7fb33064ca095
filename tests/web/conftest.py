from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from web_files import (
    NOT_UNDER_NODE,
    WEB_FILES,
    WebFile,
    make_web_file,
    predict_many_under_node,
    require_node,
    served_example,
    write_rows,
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
    jobs = []
    for number, name in enumerate(names):
        rows = write_rows(folder / f"rows{number}.json", file_of(name).rows)
        jobs.append([rows, *file_of(name).write(folder / f"{number}")])
    return dict(zip(names, predict_many_under_node(folder, jobs), strict=True))


@pytest.fixture(scope="session")
def page_address() -> Iterator[str]:
    with served_example() as address:
        yield address


@pytest.fixture
def chosen(
    file_of: Callable[[str], WebFile], request: pytest.FixtureRequest, tmp_path: Path
) -> tuple[WebFile, Path, list[Path]]:
    """Return the file that a test names, and where its rows and it lie."""
    file = file_of(request.param)
    return file, write_rows(tmp_path / "rows.json", file.rows), file.write(tmp_path / "model")
