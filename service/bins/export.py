"""Export of a calibration's bin tables as a document, and of a document as CSV or Parquet."""

import io
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec.structs import asdict

import models
from service.bins.digest import content_sha256
from service.bins.schemas import (
    Bin,
    BinsDocument,
    ModelRun,
    Origin,
    OutOfDistribution,
    Prior,
    ReadOutput,
    Selective,
    Table,
    schema_of,
)
from service.bins.set_schemas import Data
from service.calibrations.fit_config import IntervalConfig
from service.calibrations.preprocessing_config import PreprocessingConfig
from service.graph.description import OutputChoice
from service.predictions.served_calibration import accept_results, ood_threshold
from service.reports.csv_table import csv_text
from service.reports.report import render_bin
from service.runner.messages.onnx_models import serving
from service.runner.model_description import ModelDescription
from service.storage.fit_results import read_fitted
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
        for index, found in enumerate(table.bins):
            yield [
                *(table.event, table.measure, table.served, index),
                *(found.lower, found.upper, found.count, found.hits, found.weight),
                *(found.probability, *found.interval, found.mean_uncertainty, found.odds_ratio),
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

    shared = document.model_dump(mode="json", by_alias=True, exclude={"tables"})
    metadata = {
        "howsure.schema": document.schema_,
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


EMPTY_DIGEST = "0" * 64


def export_bins(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> BinsDocument:
    """Return all tables of a calibration and everything else that its answers depend on.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    """
    with workspace.database.reading(tenant_id) as session:
        fitted = read_fitted(session, tenant_id, reference)
    document = _document(fitted.row, fitted.tables)
    return document.model_copy(update={"content_sha256": content_sha256(document)})


def served_bins(
    workspace: Workspace, tenant_id: uuid.UUID, calibration_id: uuid.UUID
) -> dict[str, Any]:
    """Return the part of the report with the served table of each event."""
    with workspace.database.reading(tenant_id) as session:
        tables = read_fitted(session, tenant_id, str(calibration_id)).served
    return {
        "events": {
            str(table.k): {
                "measures": {
                    table.measure: {
                        "lookup": table.lookup,
                        "bins": [render_bin(one, table.n_samples) for one in table.bins],
                    }
                }
            }
            for table in tables
        }
    }


def model_run(row: models.Calibration, measures: Sequence[str]) -> ModelRun | None:
    """Return how a calibration runs its model where these measures answer; None without one."""
    model = ModelDescription.of(row)
    if model is None:
        return None
    files = sorted(row.artifacts, key=lambda artifact: artifact.position)
    return ModelRun(
        members=[file.sha256 for file in files if file.role == "model"][1:],
        companions={file.label: file.sha256 for file in files if file.role == "model_data"},
        outputs=[_read_output(found) for found in model.outputs],
        averaged=model.is_averaged,
        passes=serving(model.resolved, measures)["passes"],
        preprocessing=_preprocessing(model.resolved),
    )


def _preprocessing(resolved: Mapping[str, Any]) -> PreprocessingConfig | None:
    # Models stored before preprocessing existed lack the key.
    found = resolved.get("preprocessing")
    return None if found is None else PreprocessingConfig.model_validate(found)


def _read_output(found: dict[str, Any]) -> ReadOutput:
    choice = OutputChoice(**found)
    return ReadOutput(**{name: getattr(choice, name) for name in ReadOutput.model_fields})


def _document(row: models.Calibration, tables: Sequence[models.BinTable]) -> BinsDocument:
    config = row.config
    data = row.data
    onnx_model = row.onnx_model or {}
    served = [table for table in tables if table.served]
    level = config["ood"]["level"]
    written = [_table(table) for table in tables]
    return BinsDocument(
        schema=schema_of(written),
        content_sha256=EMPTY_DIGEST,
        calibration=Origin(id=row.id, name=row.name, version=row.version),
        model_sha256=onnx_model.get("sha256"),
        model=model_run(row, [table.measure for table in served]),
        data_sha256=data["sha256"],
        data=_data(data),
        classes=config["classes"],
        top_k=config["top_k"],
        decision_threshold=config.get("decision_threshold"),
        serve={str(table.k): table.measure for table in served},
        out_of_distribution=OutOfDistribution(level=level, threshold=ood_threshold(served, level)),
        selective=[
            _selective(target, found)
            for target, found in accept_results(served, config["selective"])
        ],
        tables=written,
    )


def _data(data: Mapping[str, Any]) -> Data:
    stored = {name: data[name] for name in Data.model_fields if data.get(name) is not None}
    return Data.model_validate_json(json.dumps(stored))


def _selective(target: Mapping[str, float], found: dict[str, Any] | None) -> Selective:
    found = found or {"n_accepted": 0, "n_errors": 0}
    names = [name for name in Selective.model_fields if name not in target]
    return Selective.model_validate({**target, **{name: found.get(name) for name in names}})


def _table(table: models.BinTable) -> Table:
    same = ("measure", "served", "lookup", "monotone", "requested_bins", "quantile_bins")
    values = {name: getattr(table, name) for name in same}
    for part, kind in (("interval", IntervalConfig), ("prior", Prior)):
        values[part] = {name: getattr(table, f"{part}_{name}") for name in kind.model_fields}
    values["curve"] = table.smooth
    is_label_model = "floor" in (table.learned or {})
    values["label_model" if is_label_model else "learned"] = table.learned
    values["effective_counts"] = (table.analysis.get("effective") or {}).get("counts")
    bins = [Bin(**asdict(render_bin(one, table.n_samples))) for one in table.bins]
    return Table(event=table.k, bins=bins, **values)
