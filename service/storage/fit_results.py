"""Results of fits as rows, and back; an edge without limit is null.

A database does not notice a value that a disk, a program or a hand has changed, and a probability
computed from it would be wrong without a word. So what answers depend on has a digest, which is
checked whenever it is loaded.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import structlog
from numpy.typing import NDArray
from sqlalchemy import inspect, select
from sqlalchemy.orm import Session, selectinload, undefer

import models
from howsure.statistics.bins.curve import Curve
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from howsure.statistics.label_model.recorded import Formula, formula_of
from howsure.statistics.plain import to_plain
from models import Base, Calibration
from service.errors import ArtifactDamaged
from service.json_pieces import json_pieces
from service.storage.calibrations import MODEL_ROLES, CalibrationRepository

log = structlog.get_logger(__name__)


def bin_table_row(
    table: BinTable, *, learned: Formula | None = None, **columns: object
) -> models.BinTable:
    """Return the rows of a fitted table.

    ``columns`` are those of its row that the table does not hold: ``quantile_bins`` are the bins
    before any were pooled; ``candidates`` are the numbers of bins that were tried; ``analysis`` and
    ``curves`` are plain data, and never a NaN. ``learned`` is the formula of a learned measure.
    """
    return models.BinTable(
        **{"candidates": [], **columns},
        requested_bins=table.requested_bins,
        lookup=table.lookup,
        monotone=table.monotone,
        interval_method=table.interval.method,
        interval_level=table.interval.level,
        interval_simultaneous=table.interval.simultaneous,
        prior_accuracy=table.prior.accuracy,
        prior_strength=table.prior.strength,
        prior_degenerate=table.prior.degenerate,
        n_samples=table.n_samples,
        smooth=to_plain(table.curve),
        learned=to_plain(learned),
        bins=_bin_rows(table),
    )


def core_table(row: models.BinTable) -> BinTable:
    """Return the table that the rows hold, equal to the one they were made from."""

    def column(name: str) -> NDArray[np.float64]:  # null is NaN
        return np.array([getattr(found, name) for found in row.bins], np.float64)

    return BinTable(
        edges=np.array([-math.inf, *column("upper")[:-1], math.inf], np.float32),
        counts=np.array([found.count for found in row.bins], np.int64),
        hits=np.array([found.hits for found in row.bins], np.int64),
        prior=BetaPrior(row.prior_accuracy, row.prior_strength, degenerate=row.prior_degenerate),
        probability=column("probability"),
        lower=column("interval_lower"),
        upper=column("interval_upper"),
        mean_uncertainty=column("mean_uncertainty"),
        requested_bins=row.requested_bins,
        lookup=row.lookup,
        curve=None if row.smooth is None else Curve(**row.smooth),
        monotone=row.monotone,
        interval=IntervalOptions(
            row.interval_method, row.interval_level, simultaneous=row.interval_simultaneous
        ),
    )


def learned_formulas(rows: Iterable[models.BinTable]) -> dict[int, Formula]:
    """Return the formulas of the learned measures of some tables, by event.

    Events that share a model of the labels share the object.
    """
    formulas: dict[int, Formula] = {}
    stored = {row.k: row.learned for row in rows if row.learned is not None}
    for k, plain in stored.items():
        same = next((formulas[other] for other in formulas if stored[other] == plain), None)
        formulas[k] = same or formula_of(plain)
    return formulas


def tables_of(
    session: Session, tenant_id: UUID, calibration_id: UUID, *, with_curves: bool = False
) -> Sequence[models.BinTable]:
    """Return the tables of a calibration with their bins, by event and then as they were fitted.

    Their curves are long: they can be read only if they were asked for.
    """
    query = (
        select(models.BinTable)
        .where(
            models.BinTable.tenant_id == tenant_id,
            models.BinTable.calibration_id == calibration_id,
        )
        .options(selectinload(models.BinTable.bins))
        .order_by(models.BinTable.k, models.BinTable.id)
    )
    if with_curves:
        query = query.options(undefer(models.BinTable.curves))
    return session.scalars(query).all()


def _bin_rows(table: BinTable) -> list[models.Bin]:
    odds_ratios = table.odds_ratios
    return [
        models.Bin(
            index=i,
            lower=_finite(table.edges[i]),
            upper=_finite(table.edges[i + 1]),
            count=int(table.counts[i]),
            hits=int(table.hits[i]),
            probability=float(table.probability[i]),
            interval_lower=float(table.lower[i]),
            interval_upper=float(table.upper[i]),
            mean_uncertainty=_finite(table.mean_uncertainty[i]),
            odds_ratio=_finite(odds_ratios[i]),
        )
        for i in range(table.n_bins)
    ]


def _finite(value: np.floating) -> float | None:
    return float(value) if math.isfinite(value) else None


_CONTENT = (
    *("name", "version", "config", "onnx_model", "data", "accuracy", "serve", "warnings"),
    *("findings", "model_scores", "verdicts", "baselines", "oracles"),
)
_FILE = ("role", "position", "label", "sha256")
_KEYS = {"id", "tenant_id", "calibration_id", "bin_table_id"}
_LONG = {"curves"}


@dataclass(frozen=True)
class Fitted:
    """A calibration that has succeeded, with its files, and its tables with their bins."""

    row: Calibration
    tables: Sequence[models.BinTable]

    @property
    def served(self) -> list[models.BinTable]:
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


_DIGESTED = json.JSONEncoder(sort_keys=True, default=str)


def digest_of(content: object) -> str:
    """Return the SHA-256 of values as JSON with sorted keys."""
    digest = hashlib.sha256()
    for piece in json_pieces(content, _DIGESTED):
        digest.update(piece.encode())
    return digest.hexdigest()


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
        if row.digest != fitted.digest():
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
