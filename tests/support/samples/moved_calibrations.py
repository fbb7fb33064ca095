"""Calibrations that no service has loaded yet, made to look as if they were made elsewhere."""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from databases import opened_database
from running_service import npz
from sqlalchemy import select

from models import Calibration
from service.storage.fit_results import seal
from service.storage.tenants import ALL_TENANTS

CUDA = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"
# What the names of records begin with in the file of the samples.
RECORD = "record/"

Arrays = dict[str, np.ndarray]


@contextmanager
def _database(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / "howsure.sqlite3")) as connection, connection:
        yield connection


def say_made_on_cuda(folder: Path, name: str) -> None:
    """Have all versions of a name say that CUDA ran them over their samples."""
    with (
        opened_database(f"sqlite:///{folder / 'howsure.sqlite3'}") as database,
        database.session(ALL_TENANTS) as session,
    ):
        for row in session.scalars(select(Calibration).filter_by(name=name)).all():
            row.onnx_model = {**row.onnx_model, "provider": CUDA, "device": "cuda:0"}
            seal(session, row.tenant_id, row.id)


def change_records(folder: Path, change: Callable[[Arrays], None], *, name: str) -> None:
    """Change the records that are kept with the samples of a name, and their digest with them."""
    with _database(folder) as database:
        key = _key(database, name)
        path = folder / "artifacts" / key
        with np.load(path) as stored:
            arrays = dict(stored)
        records = {n.removeprefix(RECORD): a for n, a in arrays.items() if n.startswith(RECORD)}
        change(records)
        arrays |= {RECORD + name: array for name, array in records.items()}
        content = npz(**arrays)
        path.write_bytes(content)
        database.execute(
            "UPDATE artifact SET sha256 = ?, size = ? WHERE key = ?",
            [hashlib.sha256(content).hexdigest(), len(content), key],
        )


def remove_samples(folder: Path, name: str, *, rows: bool = False) -> None:
    """Remove the file of a name's samples; with ``rows`` its row, as if none had been kept."""
    with _database(folder) as database:
        key = _key(database, name)
        if rows:
            database.execute("DELETE FROM artifact WHERE key = ?", [key])
        else:
            (folder / "artifacts" / key).unlink()


def _key(database: sqlite3.Connection, name: str) -> str:
    ((key,),) = database.execute(
        "SELECT key FROM artifact JOIN calibration ON calibration.id = calibration_id"
        " WHERE role = 'samples' AND name = ?",
        [name],
    ).fetchall()
    return str(key)
