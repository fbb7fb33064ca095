"""A fit as it is kept: rows of tables and scores, and plain data of what else it found."""

import uuid
from dataclasses import asdict
from typing import Any

import models
from service.core.fit import EventFit, Fit, MeasureFit
from service.core.fit_result import BaselineFit
from service.core.mislabelled import mislabelled_candidates
from service.core.plain_data import as_plain
from service.core.records import Records
from service.storage.bin_tables import bin_table_row
from service.storage.scores import score_rows

MISLABELLED_SHOWN = 50


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
                analysis=_analysis(found),
                curves=_curves(found),
            )
            for name, found in event.measures.items()
        ]
        rows += score_rows(
            tenant_id=tenant_id,
            calibration_id=calibration_id,
            k=k,
            measures=event.measures,
            baselines=event.baselines,
            oracle=event.oracle,
        )
    return rows


def fitted_values(fit: Fit, records: Records) -> dict[str, Any]:
    """Return the columns of the calibration itself, as plain data by event or by set."""
    events = fit.events
    return {
        "accuracy": {str(k): event.accuracy for k, event in events.items()},
        "serve": {str(k): event.served for k, event in events.items()},
        "model_scores": as_plain(fit.model_scores),
        "verdicts": {str(k): as_plain(event.verdict) for k, event in events.items()},
        "baselines": {str(k): _baselines(event) for k, event in events.items()},
        "mislabelled": {
            str(k): as_plain(_mislabelled(event, records)) for k, event in events.items()
        },
    }


def _analysis(found: MeasureFit) -> dict[str, Any]:
    return {
        name: as_plain(getattr(found, name))
        for name in (
            "coarse",
            "ood_thresholds",
            "selective",
            "guarantee",
            "ece_band",
            "evaluation_ece_band",
            "rank_grid",
            "difference",
            "reliability",
        )
    }


def _curves(found: MeasureFit) -> dict[str, Any]:
    """Return what is long, and drawn."""
    curves: dict[str, Any] = as_plain(found.curves) or {}
    return curves | ({} if found.scatter is None else {"scatter": as_plain(found.scatter)})


def _baselines(event: EventFit) -> dict[str, Any]:
    """Return what a baseline has beside its scores, which are rows."""

    def plain(found: BaselineFit) -> dict[str, Any]:
        names = ("log_floor", "parameters", "ece_band", "evaluation_ece_band")
        return {name: as_plain(getattr(found, name)) for name in names}

    return {name: plain(found) for name, found in event.baselines.items()}


def _mislabelled(event: EventFit, records: Records) -> tuple[object, ...]:
    served = event.measures[event.served]
    return mislabelled_candidates(
        records, event.k, served.column, served.table, n=MISLABELLED_SHOWN
    )
