"""Fixtures of the whole suite, and how hypothesis searches."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from databases import DIALECTS, MigratedSchemas, scratch_database, scratch_schema

from service.storage.database import Database, open_database
from service.storage.schema import upgrade

# Examples are slow on a busy machine for reasons that are not the example's: no deadline.
hypothesis.settings.register_profile("dev", deadline=None, max_examples=50)
hypothesis.settings.register_profile("ci", deadline=None, max_examples=100, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session")
def postgresql_database_url() -> Iterator[str]:
    """An empty PostgreSQL database of this test process."""
    with scratch_database() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the schema, to copy."""
    path = tmp_path_factory.mktemp("sqlite") / "migrated.sqlite3"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def migrated_schemas(postgresql_database_url: str) -> Iterator[MigratedSchemas]:
    """PostgreSQL schemas that are up to date: to make one for each test would take far longer."""
    schemas = MigratedSchemas(postgresql_database_url)
    yield schemas
    schemas.close()


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    """SQLite and then PostgreSQL."""
    return request.param


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
        path = tmp_path / "howsure.sqlite3"
        shutil.copy(request.getfixturevalue("migrated_sqlite_file"), path)
        yield f"sqlite:///{path}"
    else:
        with request.getfixturevalue("migrated_schemas").lend() as url:
            yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The same, opened."""
    opened = open_database(database_url)
    yield opened
    opened.dispose()
