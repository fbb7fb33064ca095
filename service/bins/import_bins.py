"""Import of a bins document as a calibration that succeeds at once.

Without samples it has no scores, curves or guarantees.
"""

import json
import uuid
from dataclasses import replace
from itertools import chain
from typing import Any

import msgspec

import models
from howsure.bins_document.conversion import fitted_formula, fitted_table
from howsure.bins_document.document import BinsDocument, Selective
from howsure.bins_document.read import DocumentError, read_document
from howsure.bins_document.table import Table
from howsure.statistics.measures import column, supplied_names
from service.bins.compatible_model import PLACE, find_compatible_model
from service.calibrations.config import MAX_CLASSES_BYTES, CalibrationConfig, parse_config
from service.calibrations.manage import library_versions
from service.errors import InvalidConfig, InvalidInput, MalformedRequest
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
    check_printable(document.classes, f"{PLACE}.classes")
    n_bytes = len(json.dumps(document.classes))
    if n_bytes > MAX_CLASSES_BYTES:
        message = f"expected at most {MAX_CLASSES_BYTES} bytes of JSON, got {n_bytes}"
        raise InvalidInput.at(f"{PLACE}.classes", message)
    data = document.data
    words = chain(data.texts, *data.texts.values(), data.input_ranges, data.column_ranges)
    check_printable(words, f"{PLACE}.data")
    place = "name" if name else f"{PLACE}.calibration.name"
    config = _config(document, _checked(name or document.calibration.name, place))
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


def read_bins_document(body: bytes) -> BinsDocument:
    """Return the document of a request.

    Raises
    ------
    MalformedRequest, InvalidInput
        If it is no JSON, or breaks a rule.
    """
    try:
        return read_document(body)
    except DocumentError as error:
        failure = InvalidInput if error.is_json else MalformedRequest
        place = f"{PLACE}.{error.place}" if error.place else PLACE
        raise failure.at(place, error.rule) from error


def _checked(name: str, place: str) -> str:
    try:
        parse_config(json.dumps({"name": name}), CalibrationConfig)
    except InvalidConfig as error:
        raise InvalidInput.at(place, error.violations[0].message) from error
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
        "interval": msgspec.to_builtins(served.interval),
        "monotone": served.monotone,
        "selective": [
            {"max_risk": target.max_risk, "delta": target.delta} for target in document.selective
        ],
        "ood": {"level": document.out_of_distribution.level},
        "classes": document.classes,
        "preprocessing": None
        if document.model is None or document.model.preprocessing is None
        else document.model.preprocessing.as_dict(),
    }
    return parse_config(json.dumps(asked), CalibrationConfig).model_dump(mode="json")


def _data(document: BinsDocument) -> dict[str, Any]:
    data = msgspec.to_builtins(document.data)
    ranges = (SCORE_RANGE, TEXTS, INPUT_RANGES, COLUMN_RANGES)
    return {
        "sha256": document.data_sha256,
        "samples": document.data.samples,
        "kind": document.data.kind,
        "format": document.schema,
        "supplied": list(supplied_names(table.measure for table in document.tables)),
        "class_counts": None,
        "evaluation_sha256": None,
        "evaluation_samples": None,
        "imported": {
            **msgspec.to_builtins(document.calibration),
            "content_sha256": document.content_sha256,
        },
    } | {name: data[name] for name in ranges if name in data}


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
        str(table.event): sum(one.hits for one in table.bins) / document.data.samples
        for table in document.tables
        if table.served
    }


def _table_row(
    document: BinsDocument, table: Table, tenant_id: uuid.UUID, calibration_id: uuid.UUID
) -> models.BinTable:
    return bin_table_row(
        fitted_table(table),
        tenant_id=tenant_id,
        calibration_id=calibration_id,
        k=table.event,
        measure=table.measure,
        column=column(table.measure, table.event),
        served=table.served,
        quantile_bins=table.quantile_bins,
        analysis=_analysis(document, table),
        learned=fitted_formula(table),
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


def _selective(result: Selective) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(result)
    return {"target": {name: values.pop(name) for name in ("max_risk", "delta")}, **values}
