"""Databases with files, to be backed up and to be restored into."""

import uuid
from contextlib import ExitStack

import pytest
from databases import DIALECTS, put_sqlite_file, scratch_schema
from stored_rows import StoredPlace, fill_with_files


@pytest.fixture
def empty_place(request, tmp_path):
    """Make an empty database of a dialect, with or without the tables, and a place for files."""
    with ExitStack() as stack:

        def make(dialect, *, migrated=False):
            folder = tmp_path / uuid.uuid4().hex
            folder.mkdir()
            if dialect == "sqlite":
                url = f"sqlite:///{folder / 'howsure.sqlite3'}"
                if migrated:
                    put_sqlite_file(url)
                return StoredPlace(url, folder / "artifacts")
            if migrated:
                lent = request.getfixturevalue("migrated_schemas").lend()
            else:
                lent = scratch_schema(request.getfixturevalue("postgresql_database_url"))
            return StoredPlace(stack.enter_context(lent), folder / "artifacts")

        yield make


@pytest.fixture
def place(database_url, tmp_path):
    """A database in use, with the files of its rows."""
    kept = StoredPlace(database_url, tmp_path / "artifacts")
    fill_with_files(kept)
    return kept


@pytest.fixture
def other_dialect(dialect):
    return next(other for other in DIALECTS if other != dialect)


@pytest.fixture
def backup(place, tmp_path):
    """A backup of it."""
    place.back_up(tmp_path / "backup")
    return tmp_path / "backup"


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    """A SQLite file in use, with its files, that no test changes."""
    folder = tmp_path_factory.mktemp("stored")
    place = StoredPlace(f"sqlite:///{folder / 'howsure.sqlite3'}", folder / "artifacts")
    put_sqlite_file(place.url)
    fill_with_files(place)
    return place


@pytest.fixture(scope="session")
def stored_backup(stored):
    """A backup of it, that no test changes either."""
    stored.back_up(stored.folder.with_name("backup"))
    return stored.folder.with_name("backup")
