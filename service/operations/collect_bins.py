"""The bins document of a calibration: what was stored of it; nothing is computed anew."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, cast

import models
from service.graph.output import OutputChoice
from service.operations.bins_digest import content_sha256
from service.operations.bins_document import (
    SCHEMA,
    Bin,
    BinsDocument,
    Data,
    ModelRun,
    Origin,
    OutOfDistribution,
    Prior,
    ReadOutput,
    Selective,
    Table,
)
from service.operations.fit_config import IntervalConfig
from service.operations.picture_config import PreprocessingConfig
from service.operations.served_thresholds import accept_results, ood_threshold
from service.operations.workspace import Workspace
from service.runner import serving
from service.storage.bin_tables import tables_of
from service.storage.calibrations import CalibrationRepository

UNSIGNED = "0" * 64


def collect_bins(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> BinsDocument:
    """Return all tables of a calibration, and all else that its answers depend on.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    """
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, tenant_id).find_ready(reference)
        tables = tables_of(session, tenant_id, row.id)
    document = _document(row, tables)
    return document.model_copy(update={"content_sha256": content_sha256(document)})


def model_run(row: models.Calibration, measures: Sequence[str]) -> ModelRun | None:
    """Return how a calibration runs its model where these measures answer; None without one."""
    if row.onnx_model is None:
        return None
    resolved = cast("dict[str, Any]", row.onnx_model["resolved"])
    files = sorted(row.artifacts, key=lambda artifact: artifact.position)
    return ModelRun(
        members=[file.sha256 for file in files if file.role == "model"][1:],
        companions={file.label: file.sha256 for file in files if file.role == "model_data"},
        outputs=[
            _read_output(found) for found in (resolved["output"], *resolved.get("members", []))
        ],
        averaged=bool(resolved.get("averaged")),
        # Models stored before there were passes lack the key.
        passes=serving(resolved, measures)["passes"],
        preprocessing=_preprocessing(resolved),
    )


def _preprocessing(resolved: Mapping[str, Any]) -> PreprocessingConfig | None:
    # What was stored before there was any lacks the key.
    found = resolved.get("preprocessing")
    return None if found is None else PreprocessingConfig.model_validate(found)


def _read_output(found: dict[str, Any]) -> ReadOutput:
    choice = OutputChoice.from_dict(found).as_dict()
    return ReadOutput(**{name: choice[name] for name in ReadOutput.model_fields})


def _document(row: models.Calibration, tables: Sequence[models.BinTable]) -> BinsDocument:
    config = cast("dict[str, Any]", row.config)
    data = cast("dict[str, Any]", row.data)
    onnx_model = cast("dict[str, Any]", row.onnx_model or {})
    served = [table for table in tables if table.served]
    level = config["ood"]["level"]
    return BinsDocument(
        schema=SCHEMA,
        content_sha256=UNSIGNED,
        calibration=Origin(id=row.id, name=row.name, version=row.version),
        model_sha256=onnx_model.get("sha256"),
        model=model_run(row, [table.measure for table in served]),
        data_sha256=data["sha256"],
        data=Data(samples=data["samples"], kind=data["kind"]),
        classes=config["classes"],
        top_k=config["top_k"],
        serve={str(table.k): table.measure for table in served},
        out_of_distribution=OutOfDistribution(level=level, threshold=ood_threshold(served, level)),
        selective=[
            _selective(target, found)
            for target, found in accept_results(served, config["selective"])
        ],
        tables=[_table(table) for table in tables],
    )


def _selective(target: Mapping[str, float], found: dict[str, Any] | None) -> Selective:
    found = found or {"n_accepted": 0, "n_errors": 0}
    names = [name for name in Selective.model_fields if name not in target]
    return Selective.model_validate({**target, **{name: found.get(name) for name in names}})


def _table(table: models.BinTable) -> Table:
    return Table(
        event=table.k,
        measure=table.measure,
        served=table.served,
        lookup=table.lookup,
        monotone=table.monotone,
        requested_bins=table.requested_bins,
        quantile_bins=table.quantile_bins,
        interval=IntervalConfig(
            method=table.interval_method,
            level=table.interval_level,
            simultaneous=table.interval_simultaneous,
        ),
        prior=Prior(
            accuracy=table.prior_accuracy,
            strength=table.prior_strength,
            degenerate=table.prior_degenerate,
        ),
        bins=[_bin(found, table.n_samples) for found in table.bins],
    )


def _bin(found: models.Bin, n_samples: int) -> Bin:
    return Bin(
        lower=found.lower,
        upper=found.upper,
        count=found.count,
        hits=found.hits,
        weight=found.count / n_samples,
        probability=found.probability,
        interval=(found.interval_lower, found.interval_upper),
        mean_uncertainty=found.mean_uncertainty,
        odds_ratio=found.odds_ratio,
    )
