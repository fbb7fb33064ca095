"""Export of a calibration's bin tables as a document, and of a document as CSV or Parquet."""

import io
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

import models
from howsure.bins_document.conversion import bins_of, written_table
from howsure.bins_document.digest import UNSIGNED, signed
from howsure.bins_document.document import (
    BinsDocument,
    Data,
    ModelRun,
    Origin,
    OutOfDistribution,
    ReadOutput,
    Selective,
    schema_of,
)
from howsure.bins_document.table import Table
from howsure.preprocessing import Preprocessing
from howsure.statistics.label_model.recorded import Formula
from service.graph.description import OutputChoice
from service.predictions.served_calibration import accept_results, ood_threshold
from service.reports.csv_table import csv_text
from service.runner.model_description import ModelDescription
from service.storage.fit_results import core_table, learned_formulas, read_fitted
from service.workspace import Workspace

ColumnType: TypeAlias = Literal["string", "bool", "int64", "float32", "float64"]

# The order is fixed: new columns go to the end.
COLUMNS: dict[str, ColumnType] = {
    "event": "int64",
    "measure": "string",
    "served": "bool",
    "bin": "int64",
    "lower": "float32",
    "upper": "float32",
    "count": "int64",
    "hits": "int64",
    "weight": "float64",
    "probability": "float64",
    "interval_lower": "float64",
    "interval_upper": "float64",
    "mean_uncertainty": "float64",
    "odds_ratio": "float64",
    "lookup": "string",
    "monotone": "bool",
    "requested_bins": "int64",
    "quantile_bins": "int64",
    "interval_method": "string",
    "interval_level": "float64",
    "interval_simultaneous": "bool",
    "prior_accuracy": "float64",
    "prior_strength": "float64",
    "prior_degenerate": "bool",
    "model_sha256": "string",
    "data_sha256": "string",
    "content_sha256": "string",
    "effective_count": "float64",
}


def bin_rows(document: BinsDocument) -> Iterator[list[Any]]:
    """Yield every bin of every table, its values in the order of the columns."""
    digests = [document.model_sha256, document.data_sha256, document.content_sha256]
    for table in document.tables:
        interval, prior = table.interval, table.prior
        of_table = [
            *(table.lookup, table.monotone, table.requested_bins, table.quantile_bins),
            *(interval.method, interval.level, interval.simultaneous),
            *(prior.accuracy, prior.strength, prior.degenerate),
        ]
        for index, row in enumerate(table.bins):
            yield [
                *(table.event, table.measure, table.served, index),
                *(row.lower, row.upper, row.count, row.hits, row.weight),
                *(row.probability, *row.interval, row.mean_uncertainty, row.odds_ratio),
                *of_table,
                *digests,
                None if table.effective_counts is None else table.effective_counts[index],
            ]


def bins_csv(document: BinsDocument) -> str:
    """Return one bin per line; an edge without limit is empty."""
    return csv_text(COLUMNS, bin_rows(document))


def bins_parquet(document: BinsDocument) -> bytes:
    """Return one bin per row; the metadata ``howsure.document`` holds what all rows share.

    An edge without limit is null. Edges are float32, exactly as predictions compare them.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    import pyarrow.parquet as pa_parquet  # noqa: PLC0415 - slow to import

    shared = msgspec.to_builtins(document)
    del shared["tables"]
    metadata = {
        "howsure.schema": document.schema,
        "howsure.content_sha256": document.content_sha256,
        "howsure.document": json.dumps(shared, ensure_ascii=False),
    }
    types = {"bool": pa.bool_(), "string": pa.string(), "int64": pa.int64()}
    types |= {"float32": pa.float32(), "float64": pa.float64()}
    schema = pa.schema(
        [pa.field(name, types[kind]) for name, kind in COLUMNS.items()], metadata=metadata
    )
    columns = zip(*bin_rows(document), strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    written = io.BytesIO()
    pa_parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), written)
    return written.getvalue()


def export_bins(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> BinsDocument:
    """Return all tables of a calibration and everything else that its answers depend on.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    """
    with workspace.database.reading(tenant_id) as session:
        fitted = read_fitted(session, tenant_id, reference)
    return signed(_document(fitted.row, fitted.tables))


def served_bins(
    workspace: Workspace, tenant_id: uuid.UUID, calibration_id: uuid.UUID
) -> dict[str, Any]:
    """Return the part of the report with the served table of each event."""
    with workspace.database.reading(tenant_id) as session:
        tables = read_fitted(session, tenant_id, str(calibration_id)).served
    measures = {
        str(one.k): {one.measure: {"lookup": one.lookup, "bins": bins_of(core_table(one))}}
        for one in tables
    }
    return {"events": {k: {"measures": of_event} for k, of_event in measures.items()}}


def model_run(row: models.Calibration, measures: Sequence[str]) -> ModelRun | None:
    """Return how a calibration runs its model where these measures answer; None without one."""
    model = ModelDescription.of(row)
    if model is None:
        return None
    files = sorted(row.artifacts, key=lambda artifact: artifact.position)
    preprocessing = model.resolved.get("preprocessing")  # which earlier releases did not store
    return ModelRun(
        members=[file.sha256 for file in files if file.role == "model"][1:],
        companions={file.label: file.sha256 for file in files if file.role == "model_data"},
        outputs=[_read_output(OutputChoice(**output)) for output in model.outputs],
        averaged=model.is_averaged,
        passes=[plan for plan in model.passes if plan.measure in measures],
        preprocessing=None if preprocessing is None else Preprocessing.from_dict(preprocessing),
    )


def _read_output(choice: OutputChoice) -> ReadOutput:
    names = ReadOutput.__struct_fields__
    return ReadOutput(**{name: getattr(choice, name) for name in names})


def _document(row: models.Calibration, tables: Sequence[models.BinTable]) -> BinsDocument:
    config = row.config
    served = [table for table in tables if table.served]
    level = config["ood"]["level"]
    formulas = learned_formulas(tables)
    written = [_table(table, formulas.get(table.k)) for table in tables]
    return BinsDocument(
        schema=schema_of(written),
        content_sha256=UNSIGNED,
        calibration=Origin(id=row.id, name=row.name, version=row.version),
        model_sha256=(row.onnx_model or {}).get("sha256"),
        model=model_run(row, [table.measure for table in served]),
        data_sha256=row.data["sha256"],
        data=_data(row.data),
        classes=config["classes"],
        top_k=config["top_k"],
        decision_threshold=config.get("decision_threshold"),
        serve={str(table.k): table.measure for table in served},
        out_of_distribution=OutOfDistribution(level=level, threshold=ood_threshold(served, level)),
        selective=[
            _selective(target, result)
            for target, result in accept_results(served, config["selective"])
        ],
        tables=written,
    )


def _data(data: Mapping[str, Any]) -> Data:
    names = Data.__struct_fields__
    stored = {name: data[name] for name in names if data.get(name) is not None}
    return msgspec.convert(stored, Data)


def _selective(target: Mapping[str, float], result: dict[str, Any] | None) -> Selective:
    names = Selective.__struct_fields__
    values = {"n_accepted": 0, "n_errors": 0, **(result or {}), **target}
    return msgspec.convert({name: values.get(name) for name in names}, Selective)


def _table(row: models.BinTable, formula: Formula | None) -> Table:
    return written_table(
        core_table(row),
        event=row.k,
        measure=row.measure,
        served=row.served,
        quantile_bins=row.quantile_bins,
        formula=None if row.learned is None else formula,
        effective_counts=(row.analysis.get("effective") or {}).get("counts"),
    )
