"""Rows of every table and the files that they name; what a restored copy of them must be."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from schema_rows import HEAD_ROWS, in_order

import models
from service.storage.artifact_store import ArtifactStore, open_artifact_store
from service.storage.database import Database, open_database
from service.storage.schema import upgrade


@dataclass(frozen=True)
class Kept:
    """A database and the place of its artifacts."""

    url: str
    folder: Path

    @property
    def artifacts(self) -> ArtifactStore:
        return open_artifact_store(str(self.folder))

    def open(self) -> Database:
        return open_database(self.url)


def put_content(artifacts: ArtifactStore, key: str, content: bytes) -> dict[str, object]:
    """Store a file; return what its row says of it."""
    stored = artifacts.put_bytes(key, content)
    return {"key": key, "sha256": stored.sha256, "size": stored.size}


def fill_with_files(kept: Kept) -> None:
    """Put rows into each table of a database that is up to date, and their files into the store.

    Two keys have the same content, and two rows the same key.
    """
    database = kept.open()
    with database.session() as session:
        for table in models.Base.metadata.sorted_tables:
            for row in HEAD_ROWS[table.name]:
                values = dict(row)
                if table.name == "artifact":
                    content = b"the same" if row["position"] == 1 else row["key"].encode() * 50
                    values |= put_content(kept.artifacts, row["key"], content)
                session.execute(sa.insert(table).values(values))
    database.dispose()


def rows_of(database: Database) -> dict[str, list[dict[str, object]]]:
    """Return all rows as the models have them: alike on every database."""
    with database.reading() as session:
        return {
            table.name: in_order(
                [dict(row) for row in session.execute(sa.select(table)).mappings()]
            )
            for table in models.Base.metadata.sorted_tables
        }


def assert_files_are_those_of_the_rows(kept: Kept) -> None:
    """Each row has its file, unharmed, and each file its row."""
    artifacts, database = kept.artifacts, kept.open()
    found = rows_of(database)["artifact"]
    database.dispose()
    assert set(artifacts.keys()) == {row["key"] for row in found}
    for row in found:
        content = artifacts.get_bytes(row["key"], row["sha256"])
        assert len(content) == row["size"]
        assert hashlib.sha256(content).hexdigest() == row["sha256"]


def handed_back(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return jobs as they are once nobody runs them any more."""
    queued = {"status": "queued", "lease_owner": None, "lease_until": None}
    return in_order(
        [
            row | queued | {"attempt": row["attempt"] - 1} if row["status"] == "running" else row
            for row in rows
        ]
    )


def is_empty(url: str) -> bool:
    """Tell whether a database holds nothing but what the migrations put there."""
    upgrade(url)
    database = open_database(url)
    counts = {name: len(rows) for name, rows in rows_of(database).items()}
    database.dispose()
    return counts.pop("tenant") == 1 and not any(counts.values())
