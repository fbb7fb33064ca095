"""Import of a bins document as a calibration that succeeds at once.

Without samples it has no scores, curves or guarantees.
"""

import json
import math
import uuid
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

import models
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from howsure.statistics.measures import column, supplied_names
from service.bins.compatible_model import find_compatible_model
from service.bins.rules import read_bins_document
from service.bins.schemas import (
    BinsDocument,
    Selective,
    Table,
    bin_columns,
    core_curve,
    learned_formula,
)
from service.calibrations.config import CalibrationConfig, parse_config
from service.calibrations.manage import library_versions
from service.errors import InvalidConfig, InvalidInput
from service.jobs.acceptance import CallContext, accepted
from service.printable import check_printable
from service.runner.messages.reading import COLUMN_RANGES, INPUT_RANGES, SCORE_RANGE, TEXTS
from service.storage.calibrations import CalibrationRepository, add_imported
from service.storage.fit_results import bin_table_row, seal


def import_bins(ctx: CallContext, body: bytes, name: str | None) -> uuid.UUID:
    """Make the next version of a name from a document; return the new calibration's id.

    It shares the stored model's files and queues no job; its bins count as stored bytes.

    Raises
    ------
    StorageLimitReached
        If the tenant has stored too much.
    MalformedRequest, InvalidInput
        If the document breaks a rule, or the model stored here would answer otherwise.
    NotFound
        If its model is not stored here.
    """
    document = read_bins_document(body)
    check_printable(document.classes, "document.classes")
    data = document.data
    words = chain(data.texts, *data.texts.values(), data.input_ranges, data.column_ranges)
    check_printable(words, "document.data")
    config = _config(document, document.calibration.name if name is None else _checked(name))
    calibration_id = uuid.uuid4()
    row = models.Calibration(
        id=calibration_id,
        name=config["name"],
        config=config,
        data=_data(document),
        versions=library_versions(),
        warnings=[_warning(document)],
        findings=[],
        accuracy=_accuracy(document),
        serve=document.serve,
    )
    tables = [
        _table_row(document, table, ctx.tenant_id, calibration_id) for table in document.tables
    ]
    without_jobs = replace(ctx, limits=replace(ctx.limits, jobs=0))
    # Before the transaction, since there may be thousands; it locks the one that was found.
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        source_id = find_compatible_model(session, ctx.tenant_id, document)
    with accepted(without_jobs, calibration_id, invalidates_cache=True) as session:
        calibrations = CalibrationRepository(session, ctx.tenant_id)
        source = None if source_id is None else calibrations.lock_ready(source_id)
        add_imported(session, ctx.tenant_id, row, source=source, tables=tables)
        seal(session, ctx.tenant_id, calibration_id)
    return calibration_id


def _checked(name: str) -> str:
    try:
        parse_config(json.dumps({"name": name}), CalibrationConfig)
    except InvalidConfig as error:
        raise InvalidInput.at("name", error.violations[0].message) from error
    return name


def _config(document: BinsDocument, name: str) -> dict[str, Any]:
    """Return the configuration that follows from the tables, with defaults for the rest."""
    served = next(table for table in document.tables if table.served)
    requested = {table.requested_bins for table in document.tables}
    asked = {
        "name": name,
        "top_k": document.top_k,
        "decision_threshold": document.decision_threshold,
        "measures": list(dict.fromkeys(table.measure for table in document.tables)),
        "serve": document.serve,
        "bins": requested.pop() if len(requested) == 1 else "auto",
        "lookup": served.lookup,
        "prior_strength": served.prior.strength,
        "interval": served.interval.model_dump(),
        "monotone": served.monotone,
        "selective": [
            {"max_risk": target.max_risk, "delta": target.delta} for target in document.selective
        ],
        "ood": {"level": document.out_of_distribution.level},
        "classes": document.classes,
        "preprocessing": None
        if document.model is None or document.model.preprocessing is None
        else document.model.preprocessing.resolved().as_dict(),
    }
    return parse_config(json.dumps(asked), CalibrationConfig).model_dump(mode="json")


def _data(document: BinsDocument) -> dict[str, Any]:
    return {
        "sha256": document.data_sha256,
        "samples": document.data.samples,
        "kind": document.data.kind,
        "format": document.schema_,
        "supplied": list(supplied_names(table.measure for table in document.tables)),
        "class_counts": None,
        "evaluation_sha256": None,
        "evaluation_samples": None,
        "imported": document.calibration.model_dump(mode="json")
        | {"content_sha256": document.content_sha256},
    } | document.data.model_dump(include={SCORE_RANGE, TEXTS, INPUT_RANGES, COLUMN_RANGES})


def _warning(document: BinsDocument) -> str:
    origin = document.calibration
    version = "" if origin.version is None else f"@{origin.version}"
    return (
        f"Imported from the bin tables of {origin.name}{version}: nothing was judged here, so "
        "there are no scores, baselines, curves or guarantees; it keeps no samples, so it cannot "
        "be fitted anew or judged on further sets."
    )


def _accuracy(document: BinsDocument) -> dict[str, float]:
    """Return the share of samples for which each event holds."""
    return {
        str(table.event): sum(found.hits for found in table.bins) / document.data.samples
        for table in document.tables
        if table.served
    }


def _table_row(
    document: BinsDocument, table: Table, tenant_id: uuid.UUID, calibration_id: uuid.UUID
) -> models.BinTable:
    return bin_table_row(
        core_table(table),
        tenant_id=tenant_id,
        calibration_id=calibration_id,
        k=table.event,
        measure=table.measure,
        column=column(table.measure, table.event),
        served=table.served,
        quantile_bins=table.quantile_bins,
        analysis=_analysis(document, table),
        learned=learned_formula(table),
    )


def core_table(table: Table) -> BinTable:
    """Return the document's table, equal to the last bit."""
    bins, prior = bin_columns(table.bins), table.prior
    return BinTable(
        edges=np.array([-math.inf, *bins.upper[:-1], math.inf], np.float32),
        counts=bins.counts,
        hits=bins.hits,
        prior=BetaPrior(prior.accuracy, prior.strength, degenerate=prior.degenerate),
        probability=bins.probability,
        lower=bins.interval_lower,
        upper=bins.interval_upper,
        mean_uncertainty=bins.mean_uncertainty,
        requested_bins=table.requested_bins,
        lookup=table.lookup,
        curve=core_curve(table),
        monotone=table.monotone,
        interval=IntervalOptions(**table.interval.model_dump()),
    )


def _analysis(document: BinsDocument, table: Table) -> dict[str, Any]:
    """Return effective samples, and the thresholds for the table that serves Top-1."""
    counts = table.effective_counts
    worth: dict[str, Any] = {} if counts is None else {"effective": {"counts": counts}}
    if not (table.served and table.event == 1):
        return worth
    flag = document.out_of_distribution
    known = {} if flag.threshold is None else {str(flag.level): flag.threshold}
    return worth | {
        "ood_thresholds": known,
        "selective": [_selective(target) for target in document.selective],
    }


def _selective(found: Selective) -> dict[str, Any]:
    result = found.model_dump()
    target = {name: result.pop(name) for name in ("max_risk", "delta")}
    return {"target": target} | result
