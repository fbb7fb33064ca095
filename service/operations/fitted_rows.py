"""A fit as rows of the database."""

import uuid
from dataclasses import asdict

import models
from service.core.fit import Fit
from service.storage.bin_tables import bin_table_row
from service.storage.scores import score_rows


def fitted_rows(fit: Fit, *, tenant_id: uuid.UUID, calibration_id: uuid.UUID) -> list[models.Base]:
    """Return every table and score of a fit."""
    rows: list[models.Base] = []
    for k, event in fit.events.items():
        rows += [
            bin_table_row(
                found.table,
                tenant_id=tenant_id,
                calibration_id=calibration_id,
                k=k,
                measure=name,
                column=found.column,
                served=name == event.served,
                quantile_bins=found.quantile_bins,
                candidates=[asdict(candidate) for candidate in found.candidates],
            )
            for name, found in event.measures.items()
        ]
        rows += score_rows(
            tenant_id=tenant_id,
            calibration_id=calibration_id,
            k=k,
            measures=event.measures,
            baselines=event.baselines,
        )
    return rows
