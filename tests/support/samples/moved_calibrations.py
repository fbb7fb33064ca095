"""Calibrations of a service that stands still, made to look as if they were made elsewhere."""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from running_service import npz

CUDA = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"
# What the names of records begin with in the file of the samples.
RECORD = "record/"

Arrays = dict[str, np.ndarray]


@contextmanager
def _database(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / "howsure.sqlite3")) as connection, connection:
        yield connection


def say_made_on_cuda(folder: Path, name: str = "digits") -> None:
    """Have all versions of a name say that CUDA ran them over their samples."""
    with _database(folder) as database:
        rows = database.execute("SELECT id, onnx_model FROM calibration WHERE name = ?", [name])
        for found, text in rows.fetchall():
            changed = json.loads(text) | {"provider": CUDA, "device": "cuda:0"}
            database.execute(
                "UPDATE calibration SET onnx_model = ? WHERE id = ?", [json.dumps(changed), found]
            )


def change_records(folder: Path, change: Callable[[Arrays], None], *, name: str = "digits") -> None:
    """Change the records that are kept with the samples of a name, and their digest with them."""
    with _database(folder) as database:
        ((key,),) = database.execute(
            "SELECT key FROM artifact JOIN calibration ON calibration.id = calibration_id"
            " WHERE role = 'samples' AND name = ?",
            [name],
        ).fetchall()
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


def forget_samples(folder: Path) -> None:
    """Have all calibrations keep neither samples nor records, as ones that were imported."""
    with _database(folder) as database:
        database.execute("DELETE FROM artifact WHERE role IN ('samples', 'records')")


def lose_samples(folder: Path) -> None:
    """Remove the files of the samples that are kept."""
    with _database(folder) as database:
        for (key,) in database.execute("SELECT key FROM artifact WHERE role = 'samples'"):
            (folder / "artifacts" / key).unlink()
