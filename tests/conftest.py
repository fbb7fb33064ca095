"""Fixtures of the whole suite, and how hypothesis searches."""

import gc
import multiprocessing.util
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import certifi
import hypothesis
import pytest
from databases import (
    MigratedSchemas,
    opened_database,
    put_sqlite_file,
    scratch_database,
    scratch_schema,
)
from forked_children import SERVER
from repeated_fits import RepeatedFits
from running_service import (  # noqa: F401 - fixtures of all rooms
    calibrated_digits,
    client,
    digits_calibration,
    service,
)
from shelf import shelf  # noqa: F401

from service.child import fitting
from service.runner import pool
from service.storage.database import Database

pytest_plugins = ["devices", "golden_texts", "no_processes", "price_list"]

gc.disable()  # until all tests are collected: nothing of them is garbage

# Examples are slow on a busy machine for reasons that are not the example's: no deadline.
# The same examples in each run: new ones are for the long form, and each that fails becomes a case.
hypothesis.settings.register_profile(
    "quick", deadline=None, max_examples=25, print_blob=True, derandomize=True
)
hypothesis.settings.register_profile("new", deadline=None, max_examples=25, print_blob=True)
hypothesis.settings.register_profile("long", deadline=None, max_examples=100, print_blob=True)
# `--hypothesis-profile=long` is for `make test-slow` and `make test-all`.
hypothesis.settings.load_profile("quick")
SLOW_SECONDS = 600


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give slow tests more time before they count as hanging; mark further cases of quick ones.

    Coverage is that of `make test`: measuring it takes half as long again.
    """
    slow = [item for item in items if item.get_closest_marker("slow")]
    is_slow = {item.nodeid for item in slow}
    quick = {_function(item) for item in items if item.nodeid not in is_slow}
    for item in slow:
        item.add_marker(pytest.mark.no_cover)
        if not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))
        if _function(item) in quick:
            item.add_marker(pytest.mark.further)


def pytest_collection_finish() -> None:
    """Let no collection of garbage look at the tests, which stay."""
    gc.collect()
    gc.freeze()
    gc.enable()


def _function(item: pytest.Item) -> str:
    """Return the id of a test's function, without its parameters."""
    return item.nodeid.partition("[")[0]


@pytest.fixture(scope="session", autouse=True)
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give each worker temporary files of its own: tests look for what is left of them."""
    # These two outlive the tests, and so stay elsewhere.
    tmp_path_factory.getbasetemp()
    multiprocessing.util.get_temp_dir()
    prefix = "howsure-tests-"
    with (
        tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        Path(folder).chmod(0o1777)  # a PostgreSQL server runs as somebody else
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        # Each HTTP client reads all certificates that it trusts: here one, for none is needed.
        first, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")
        trusted = Path(folder) / "trusted.pem"
        trusted.write_text(f"{first}{end}\n")
        patch.setenv("SSL_CERT_FILE", str(trusted))
        yield


@pytest.fixture(scope="session", autouse=True)
def forked_children(temporary_folder: None) -> Iterator[None]:
    """End the process that forks children of the runner."""
    yield
    SERVER.close()


@pytest.fixture(scope="session", autouse=True)
def repeated_fits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let services of this process fit in it, the same records with the same options once."""
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RepeatedFits, "folder", folder, raising=False)
        patch.setattr(pool, "Fitter", RepeatedFits)
        patch.setattr(fitting, "NICE", 0)
        patch.setattr(fitting, "lock_down", lambda *_, **__: None)
        yield


@pytest.fixture(scope="session")
def postgresql_database_url() -> Iterator[str]:
    """An empty PostgreSQL database of this test process."""
    with scratch_database() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_schemas(postgresql_database_url: str) -> Iterator[MigratedSchemas]:
    """PostgreSQL schemas that are up to date: to make one for each test would take far longer."""
    schemas = MigratedSchemas(postgresql_database_url)
    yield schemas
    schemas.close()


@pytest.fixture
def dialect() -> str:
    """SQLite. Tests of SQL and of transactions ask for both databases."""
    return "sqlite"


@pytest.fixture
def empty_database_url(
    dialect: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[str]:
    """A database without tables."""
    if dialect == "sqlite":
        yield f"sqlite:///{tmp_path / 'howsure.sqlite3'}"
    else:
        with scratch_schema(request.getfixturevalue("postgresql_database_url")) as url:
            yield url


@pytest.fixture
def database_url(dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database with the schema."""
    if dialect == "sqlite":
        url = f"sqlite:///{tmp_path / 'howsure.sqlite3'}"
        put_sqlite_file(url)
        yield url
    else:
        with request.getfixturevalue("migrated_schemas").lend() as url:
            yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The same, opened."""
    with opened_database(database_url) as opened:
        yield opened
