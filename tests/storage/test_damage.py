"""What is served is what was stored: a value that changed by itself is refused, never served."""

import random
import shutil
import sqlite3
import struct
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from databases import DIALECTS
from stored_rows import finished_calibration, tenant_of

import models
from service.errors import ArtifactDamaged, ServiceError
from service.storage.database import Database, open_database
from service.storage.fit_results import core_table, read_fitted
from service.storage.operating_points import OperatingPointRepository
from service.storage.tenants import ALL_TENANTS

TABLES = ("calibration", "calibration_name", "bin_table", "bin", "artifact", "operating_point")


@pytest.fixture(scope="module")
def stored(calibrated_digits, tmp_path_factory) -> Path:
    """The database of calibrated digits with an active operating point, as one file."""
    path = tmp_path_factory.mktemp("stored") / "howsure.sqlite3"
    with sqlite3.connect(calibrated_digits.folder / path.name) as source:
        source.execute("VACUUM INTO ?", (str(path),))
    source.close()
    database = open_database(f"sqlite:///{path}")
    with database.session(ALL_TENANTS) as session:
        points = OperatingPointRepository(session, tenant_of(database))
        calibration_id = read_fitted(session, tenant_of(database), "digits").row.id
        for threshold in (0.5, 0.25):
            values = {"author": "", "reason": "", "name": "auto", "threshold": threshold}
            points.add(models.OperatingPoint(calibration_id=calibration_id, **values))
    database.dispose()
    return path


def answered_with(database: Database) -> str:
    """Return everything that an answer is computed from, as text."""
    with database.reading(ALL_TENANTS) as session:
        tenant_id = tenant_of(database)
        fitted = read_fitted(session, tenant_id, "digits")
        point = OperatingPointRepository(session, tenant_id).last(fitted.row.id)
        row = fitted.row
        model = [(one.label, one.sha256) for one in row.artifacts if one.role == "model"]
        tables = [
            (one.k, one.measure, core_table(one), one.smooth, one.learned, one.analysis)
            for one in fitted.served
        ]
        decided = point and (point.name, point.threshold)
        return repr((row.version, row.config, row.onnx_model, row.data, model, tables, decided))


def flipped(value: float | str, generator: random.Random) -> float | str | bytes:
    """Return a stored value with one bit changed."""
    if isinstance(value, str):
        content = bytearray(value.encode())
    else:
        content = bytearray(struct.pack("<d" if isinstance(value, float) else "<q", value))
    if content:
        content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    if isinstance(value, str):
        return bytes(content)
    return struct.unpack("<d" if isinstance(value, float) else "<q", content)[0]


def flip_value(connection: sqlite3.Connection, generator: random.Random) -> tuple[str, ...]:
    """Change one bit of one value; return the statement that puts it back."""
    table = generator.choice(TABLES)
    columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    column = generator.choice(columns)
    query = f'SELECT rowid, "{column}" FROM {table} WHERE "{column}" IS NOT NULL'  # noqa: S608 - its own names
    rows = connection.execute(query).fetchall()
    if not rows:
        return "SELECT ?, ?", None, None
    number, value = generator.choice(rows)
    update = f'UPDATE {table} SET "{column}" = {{}} WHERE rowid = ?'  # noqa: S608 - its own names
    cast = "CAST(? AS TEXT)" if isinstance(value, str) else "?"
    with suppress(sqlite3.IntegrityError):  # two rows would have one key
        connection.execute(update.format(cast), (flipped(value, generator), number))
    connection.commit()
    return update.format("?"), value, number


@pytest.mark.process
@pytest.mark.parametrize("flips", [40, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_changed_value_is_refused_or_changes_nothing(stored, tmp_path, flips) -> None:
    path = Path(shutil.copy(stored, tmp_path / "howsure.sqlite3"))
    database, generator = open_database(f"sqlite:///{path}"), random.Random(flips)
    before, outcomes = answered_with(database), Counter()
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF")
    for _ in range(flips):
        restore, *values = flip_value(connection, generator)
        try:
            assert answered_with(database) == before
        except ServiceError as error:
            outcomes[type(error)] += 1
        connection.execute(restore, values)
        connection.commit()
    connection.close()
    database.dispose()
    assert outcomes[ArtifactDamaged] > flips / 10


@pytest.mark.process
@pytest.mark.parametrize("flips", [40, pytest.param(2_000, marks=pytest.mark.slow)])
def test_a_changed_file_is_refused_or_changes_nothing(stored, tmp_path, flips) -> None:
    content, generator = stored.read_bytes(), random.Random(flips)
    before, outcomes = None, Counter()
    for number in range(flips):
        damaged = bytearray(content)
        if number == 1:  # a name in the schema
            damaged = damaged.replace(b"interval_method", b"interval_meth0d", 1)
        elif number:
            damaged[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        path = tmp_path / f"{number}.sqlite3"
        path.write_bytes(damaged)
        database = open_database(f"sqlite:///{path}")
        try:
            found = answered_with(database)
            before = before or found
            assert found == before
        except ServiceError as error:
            outcomes[type(error)] += 1
        database.dispose()
    assert outcomes


@pytest.mark.parametrize("dialect", DIALECTS)
def test_decisions_and_values_are_checked_on_each_database(database) -> None:
    row = finished_calibration(database, "digits")
    with database.session(ALL_TENANTS) as session:
        assert read_fitted(session, tenant_of(database), "digits").row.digest
        points = OperatingPointRepository(session, tenant_of(database))
        values = {"author": "", "reason": "", "name": "auto", "threshold": 0.1}
        points.add(models.OperatingPoint(calibration_id=row.id, **values))
        assert points.last(row.id).threshold == 0.1
        session.query(models.OperatingPoint).update({"threshold": 0.2})
        with pytest.raises(ArtifactDamaged):
            points.last(row.id)
        session.query(models.OperatingPoint).delete()
        with pytest.raises(ArtifactDamaged):
            points.last(row.id)
        session.query(models.Calibration).update({"config": {"bins": 11}})
        with pytest.raises(ArtifactDamaged):
            read_fitted(session, tenant_of(database), "digits")
