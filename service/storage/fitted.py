"""What a calibration answers with, and a digest of it that is checked whenever it is loaded.

A database does not notice a value that a disk, a program or a hand has changed, and a probability
computed from it would be wrong without a word.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import inspect, select
from sqlalchemy.orm import Session, selectinload

from models import BinTable, Calibration
from models.base import Base
from service.errors import ArtifactDamaged
from service.storage.calibrations import MODEL_ROLES, CalibrationRepository
from service.storage.fit_results import tables_of

log = structlog.get_logger(__name__)

_CONTENT = (
    *("name", "version", "config", "onnx_model", "data", "accuracy", "serve", "warnings"),
    *("findings", "model_scores", "verdicts", "baselines"),
)
_FILE = ("role", "position", "label", "sha256")
_KEYS = {"id", "tenant_id", "calibration_id", "bin_table_id"}
_LONG = {"curves"}


@dataclass(frozen=True)
class Fitted:
    """A calibration that has succeeded, with its files, and its tables with their bins."""

    row: Calibration
    tables: Sequence[BinTable]

    @property
    def served(self) -> list[BinTable]:
        """The tables that /predict answers with, by event."""
        return sorted((table for table in self.tables if table.served), key=lambda one: one.k)

    def digest(self) -> str:
        """Return the SHA-256 of everything that its answers depend on, as JSON with sorted keys."""
        content = {
            "calibration": _values(self.row, _CONTENT),
            "files": [_values(one, _FILE) for one in self.row.artifacts if one.role in MODEL_ROLES],
            "tables": [
                {"table": _values(table), "bins": [_values(one) for one in table.bins]}
                for table in self.tables
            ],
        }
        return digest_of(content)


def digest_of(content: object) -> str:
    """Return the SHA-256 of values as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _values(row: Base, names: Sequence[str] = ()) -> dict[str, Any]:
    """Return the named columns of a row; all of them but its keys and the long ones by default."""
    own = names or {column.key for column in inspect(type(row)).column_attrs} - _KEYS - _LONG
    return {name: getattr(row, name) for name in own}


def read_fitted(
    session: Session, tenant_id: UUID, reference: str, *, with_curves: bool = False
) -> Fitted:
    """Return what a calibration answers with, as it was stored.

    The curves of its tables are long: they can be read only if they were asked for.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    ArtifactDamaged
        If it is not what was stored.
    """
    with undamaged(reference):
        row = CalibrationRepository(session, tenant_id).find_ready(reference)
        tables = tables_of(session, tenant_id, row.id, with_curves=with_curves)
        fitted = Fitted(row, tables)
        if row.digest not in {None, fitted.digest()}:  # None: stored by an earlier release
            raise ValueError("it has another digest")
    return fitted


def seal(session: Session, tenant_id: UUID, calibration_id: UUID) -> None:
    """Store the digest of a calibration that has succeeded, computed from what can be read."""
    session.flush()
    session.expire_all()
    query = select(Calibration).options(selectinload(Calibration.artifacts))
    row = session.scalars(query.where(Calibration.id == calibration_id)).one()
    row.digest = Fitted(row, tables_of(session, tenant_id, calibration_id)).digest()


@contextmanager
def undamaged(calibration: str) -> Iterator[None]:
    """Refuse a calibration whose rows cannot be read back."""
    try:
        yield
    except (LookupError, TypeError, ValueError) as error:
        log.exception("calibration_damaged", calibration=calibration)
        raise ArtifactDamaged(
            f"Calibration {calibration} is not what was stored: its rows in the database were "
            "changed or damaged. It does not answer; restore a backup or calibrate anew."
        ) from error
