"""Export of a calibration as one ONNX file, compared with the service before it is given out."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import models
from howsure.bins_document.pass_plan import LAST_LAYER
from howsure.onnx_head.spec import ExportSpec, export_events
from howsure.statistics.measures import parse_measure
from service.access.quotas import enforce_quotas
from service.errors import Conflict, NotFound
from service.exports.parity import Parity, compare_answers, require_parity
from service.jobs.acceptance import CallContext, deleted_on_failure
from service.jobs.samples import KeptSamples
from service.lru_cache import KeyedLocks
from service.predictions.load_calibration import load_served
from service.predictions.lookup import answers_of
from service.predictions.served_calibration import ServedCalibration, ServedOnnxModel
from service.runner.messages.onnx_models import read_table_columns
from service.runner.model_output import SERVED_CLASSES
from service.storage.artifact_keys import keys_of
from service.storage.artifact_rows import ExportRepository, KeptExport, NewArtifact
from service.storage.calibrations import CalibrationRepository

PARITY_ROWS = 1000
PARITY_BYTES = 2**28  # sent to a child in one request, which holds them twice


@dataclass(frozen=True)
class ExportedFile:
    """An exported file on this machine, with its download name, digest and parity."""

    path: Path
    name: str
    sha256: str
    parity: Parity


@contextmanager
def exported_file(ctx: CallContext, reference: str) -> Iterator[ExportedFile]:
    """Yield the exported file of a calibration; the first call makes, compares and stores it.

    Raises
    ------
    NotFound
        If there is no such calibration.
    Conflict
        If it has not succeeded, cannot be one file, or the file differs from the service.
    StorageLimitReached
        If the tenant may store no more, and the file is not stored yet.
    ServiceError
        If the model cannot be run.
    """
    served = load_served(ctx.workspace, ctx.tenant_id, reference)
    kept = _find_or_make(ctx, served)
    with ctx.workspace.artifacts.local_path(kept.key, kept.sha256) as path:
        row = kept.parity
        yield ExportedFile(
            path=path,
            name=f"{served.ref.name}-{served.ref.version}.onnx",
            sha256=kept.sha256,
            parity=Parity(row.samples, row.classes, row.bins, row.probability),
        )


@contextmanager
def exported_companion(ctx: CallContext, reference: str, name: str) -> Iterator[Path]:
    """Yield a file of external weights, under the name the model knows it by.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration or file, or it has not succeeded.
    """
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        row = CalibrationRepository(session, ctx.tenant_id).find_ready(reference)
    companions = {file.label: file for file in row.artifacts if file.role == "model_data"}
    if name not in companions:
        raise NotFound(f"The model of calibration {row.id} has no file of this name.")
    stored = companions[name]
    with ctx.workspace.artifacts.local_path(stored.key, stored.sha256) as path:
        yield path


_making = KeyedLocks[uuid.UUID]()


def _find_or_make(ctx: CallContext, served: ServedCalibration) -> KeptExport:
    with _making.of(served.ref.id):  # simultaneous callers share one file
        kept = _find(ctx, served)
        if kept is None:
            _make(ctx, served)
            kept = _find(ctx, served)
    if kept is None:
        raise NotFound("The calibration was deleted.")
    return kept


def _find(ctx: CallContext, served: ServedCalibration) -> KeptExport | None:
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        return ExportRepository(session, ctx.tenant_id).find(served.ref.id)


def _make(ctx: CallContext, served: ServedCalibration) -> None:
    """Make the file, run it and the service on the same rows, and store it if they agree."""
    onnx_model, runners = exportable_model(served), ctx.workspace.runners
    with ctx.workspace.database.reading(ctx.tenant_id) as session:
        row = CalibrationRepository(session, ctx.tenant_id).get(served.ref.id)
    samples = KeptSamples.of(ctx.workspace.artifacts, row)
    if samples is None:
        raise Conflict(
            "No samples of this calibration are stored, so a file cannot be compared with the "
            "service; export the calibration that its bins came from, or calibrate on a service "
            "that keeps inputs."
        )
    first = samples.inputs(1)
    rows = samples.inputs(parity_rows(sum(array.nbytes for array in first.values())))
    spec = export_spec(served, onnx_model, row)
    exported = runners.export(onnx_model.files, onnx_model.resolved, spec, rows)
    ours = runners.predict(onnx_model.files, onnx_model.resolved, rows)
    parity = compare_answers(answers_of(served, ours), exported.outputs)
    require_parity(parity)
    _store(ctx, served, exported.content, parity)


def parity_rows(row_bytes: int) -> int:
    """Return the number of rows to compare a file on: fewer where a row is large."""
    return max(1, min(PARITY_ROWS, PARITY_BYTES // max(row_bytes, 1)))


def _store(ctx: CallContext, served: ServedCalibration, content: bytes, parity: Parity) -> None:
    """Store the file, then the rows that refer to it; of two made at once the first stays."""
    artifacts, folder = ctx.workspace.artifacts, f"{keys_of(served.ref.id)}/export-{uuid.uuid4()}"
    with deleted_on_failure(artifacts, folder):
        key = f"{folder}/model.onnx"
        stored = artifacts.put_bytes(key, content)
        with ctx.workspace.database.session(ctx.tenant_id, invalidates_cache=False) as session:
            export = models.Export(
                tenant_id=ctx.tenant_id, calibration_id=served.ref.id, **asdict(parity)
            )
            artifact = NewArtifact("export", 0, "model.onnx", key, stored.sha256, stored.size)
            ExportRepository(session, ctx.tenant_id).add(export, artifact)
            enforce_quotas(session, ctx.tenant_id, replace(ctx.limits, jobs=0))


def exportable_model(served: ServedCalibration) -> ServedOnnxModel:
    """Return the model of a calibration that can be one file.

    Raises
    ------
    Conflict
        If it has no model or several, or an event is served by a measure that one run of one
        graph does not give.
    """
    if served.onnx_model is None:
        raise Conflict(
            "This calibration has no ONNX model: it was made from uploaded outputs. Its bins are "
            "what `howsure bins` writes, or GET /bins."
        )
    if served.onnx_model.files.members or served.onnx_model.resolved.get("averaged"):
        raise Conflict(
            "An ensemble, and a graph whose mean over passes predicts, cannot be exported as one "
            "file; calibrate one model to export it."
        )
    for event in served.events:
        if not parse_measure(event.measure).in_graph:
            raise Conflict(
                f"Top-{event.k} is served by {event.measure}, which one run of the graph does not "
                "give; refit it with another measure to serve, such as entropy or "
                f"{LAST_LAYER}."
            )
    return served.onnx_model


def export_spec(
    served: ServedCalibration, onnx_model: ServedOnnxModel, row: models.Calibration
) -> ExportSpec:
    """Return tables, thresholds and metadata of a calibration's file."""
    return ExportSpec(
        events=export_events(served.events),
        n_top=min(SERVED_CLASSES, len(served.class_names)),
        n_classes=len(served.class_names),
        ood_threshold=served.ood_threshold,
        accept_thresholds=tuple(served.accept_thresholds.items()),
        metadata=_metadata(served, onnx_model, row),
        label_model=served.label_model,
        # The events of the model's head, of which a refit may serve fewer.
        top_k=tuple(onnx_model.resolved["top_k"]),
        input_ranges=tuple(served.input_ranges.items()),
        column_ranges=tuple(served.column_ranges.items()),
    )


def _metadata(
    served: ServedCalibration, onnx_model: ServedOnnxModel, row: models.Calibration
) -> dict[str, str]:
    config = row.config
    thresholds = {
        "out_of_distribution": served.ood_threshold,
        "abstain": dict(served.accept_thresholds),
        "decision": config.get("decision_threshold"),
    }
    values = {
        "calibration": str(served.ref.id),
        "name": served.ref.name,
        "version": str(served.ref.version),
        "measures": json.dumps({str(event.k): event.measure for event in served.events}),
        "level": str(config["interval"]["level"]),
        "lookup": str(config["lookup"]),
        "data_sha256": str(row.data.get("sha256") or ""),
        "model_sha256": str((row.onnx_model or {})["sha256"]),
        "classes": json.dumps(list(served.class_names)),
        # By input, in order: without them nobody can check the order of the features.
        "columns": json.dumps(read_table_columns(onnx_model.resolved)),
        "thresholds": json.dumps(thresholds),
        # The graph takes finished input, so the file says how a picture becomes it.
        "preprocessing": json.dumps(onnx_model.resolved.get("preprocessing")),
        "versions": json.dumps(row.versions),
    }
    return {f"howsure.{name}": value for name, value in values.items()}
