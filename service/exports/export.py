"""What a calibration's file holds beside the model, and whether it can be one file at all."""

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import models
from howsure.statistics.measures import parse_measure
from service.access.quotas import enforce_quotas
from service.access.rate_limits import NO_LIMITS, TenantLimits
from service.errors import ArtifactDamaged, Conflict, InferenceFailed, NotFound, OutcomeUnknown
from service.exports.parity import Parity, compare_answers, require_parity
from service.graph.export_spec import ExportEvent, ExportSpec
from service.jobs.samples import KeptSamples
from service.predictions.load_calibration import is_deleted, load_served
from service.predictions.lookup import SHOWN_CLASSES, answers_of
from service.predictions.served_calibration import ServedCalibration, ServedOnnxModel
from service.runner.messages.frames import Array
from service.runner.messages.passes import LAST_LAYER
from service.storage.artifact_rows import ExportRepository, KeptExport, NewArtifact
from service.storage.calibrations import CalibrationRepository
from service.workspace import Workspace


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
            "This calibration has no ONNX model: it was made from uploaded outputs. Its bins can "
            "be had from /bins."
        )
    if served.onnx_model.files.members or served.onnx_model.resolved.get("averaged"):
        raise Conflict(
            "An ensemble, or a graph whose mean over passes predicts, is no single graph; "
            "calibrate one model to export it."
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
        events=tuple(ExportEvent(event.k, event.column, event.table) for event in served.events),
        n_top=min(SHOWN_CLASSES, len(served.class_names)),
        ood_threshold=served.ood_threshold,
        accept_thresholds=tuple(served.accept_thresholds.items()),
        metadata=_metadata(served, row),
        # The events that the head is made for, of which a refit may serve fewer.
        top_k=tuple(onnx_model.resolved["top_k"]),
    )


def _metadata(served: ServedCalibration, row: models.Calibration) -> dict[str, str]:
    config = row.config
    data = row.data
    onnx_model = row.onnx_model or {}
    thresholds = {
        "out_of_distribution": served.ood_threshold,
        "abstain": dict(served.accept_thresholds),
    }
    values = {
        "calibration": str(served.ref.id),
        "name": served.ref.name,
        "version": str(served.ref.version),
        "measures": json.dumps({str(event.k): event.measure for event in served.events}),
        "level": str(config["interval"]["level"]),
        "lookup": str(config["lookup"]),
        "data_sha256": str(data.get("sha256") or ""),
        "model_sha256": str(onnx_model["sha256"]),
        "classes": json.dumps(list(served.class_names)),
        "thresholds": json.dumps(thresholds),
        "versions": json.dumps(row.versions),
    }
    return {f"howsure.{name}": value for name, value in values.items()}


PARITY_ROWS = 1000
PARITY_BYTES = 2**28  # they go to a child in one request, and are there twice
DELETED = "The calibration was deleted."


@dataclass(frozen=True)
class ExportedFile:
    """The file on this machine, what it is called, its digest and its parity."""

    path: Path
    name: str
    sha256: str
    parity: Parity


@contextmanager
def exported_file(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    reference: str,
    limits: TenantLimits = NO_LIMITS,
) -> Iterator[ExportedFile]:
    """Give the file of a calibration; the first time it is made, compared and kept.

    Raises
    ------
    NotFound
        If there is no such calibration.
    Conflict
        If it has not succeeded, cannot be one file, or the file answers otherwise.
    StorageLimitReached
        If the tenant may store no more, and it is not kept yet.
    ServiceError
        If the model cannot be run.
    """
    served = load_served(workspace, tenant_id, reference)
    with ExitStack() as opened:
        with _found(workspace, tenant_id, served.ref.id):
            kept = _kept(workspace, tenant_id, served, limits)
            path = opened.enter_context(workspace.artifacts.local_path(kept.key, kept.sha256))
        found = kept.parity
        yield ExportedFile(
            path=path,
            name=f"{served.ref.name}-{served.ref.version}.onnx",
            sha256=kept.sha256,
            parity=Parity(found.samples, found.classes, found.bins, found.probability),
        )


@contextmanager
def _found(workspace: Workspace, tenant_id: uuid.UUID, calibration_id: uuid.UUID) -> Iterator[None]:
    """Say of a calibration that is deleted meanwhile, and its files with it, that there is none."""
    try:
        yield
    except (ArtifactDamaged, InferenceFailed) as error:
        if is_deleted(workspace, tenant_id, calibration_id):
            raise NotFound(DELETED) from error
        raise


def _kept(
    workspace: Workspace, tenant_id: uuid.UUID, served: ServedCalibration, limits: TenantLimits
) -> KeptExport:
    """Return what is kept of the file, which is made first where there is none."""
    with workspace.database.reading() as session:
        kept = ExportRepository(session, tenant_id).find(served.ref.id)
    if kept is None:
        _make(workspace, tenant_id, served, limits)
        with workspace.database.reading() as session:
            kept = ExportRepository(session, tenant_id).find(served.ref.id)
    if kept is None:
        raise NotFound(DELETED)
    return kept


def _make(
    workspace: Workspace, tenant_id: uuid.UUID, served: ServedCalibration, limits: TenantLimits
) -> None:
    """Write the file, run it and the service on the same rows, and keep it if they agree."""
    onnx_model = exportable_model(served)
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, tenant_id).get(served.ref.id)
    rows = _stored_rows(workspace, row)
    spec = export_spec(served, onnx_model, row)
    exported = workspace.runners.export(onnx_model.files, onnx_model.resolved, spec.as_dict(), rows)
    ours = workspace.runners.predict(onnx_model.files, onnx_model.resolved, rows)
    parity = compare_answers(answers_of(served, ours, ours.uncertainty), exported.outputs)
    require_parity(parity)
    _keep(workspace, tenant_id, served, exported.content, parity, limits)


def _stored_rows(workspace: Workspace, row: models.Calibration) -> Mapping[str, Array]:
    samples = KeptSamples.of(workspace.artifacts, row)
    if samples is None:
        raise Conflict(
            "No samples of this calibration are stored, so a file cannot be compared with the "
            "service; export the calibration that its bins came from, or calibrate on a service "
            "that keeps inputs."
        )
    first = samples.inputs(1)
    return samples.inputs(parity_rows(sum(array.nbytes for array in first.values())))


def parity_rows(row_bytes: int) -> int:
    """Return on how many rows of this size a file is compared: fewer where one is large."""
    return max(1, min(PARITY_ROWS, PARITY_BYTES // max(row_bytes, 1)))


def _keep(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    served: ServedCalibration,
    content: bytes,
    parity: Parity,
    limits: TenantLimits,
) -> None:
    """Store the file, then the rows that refer to it; of two made at once the first stays."""
    key = f"calibrations/{served.ref.id}/export-{uuid.uuid4()}"
    stored = workspace.artifacts.put_bytes(key, content)
    try:
        with workspace.database.session(invalidates_cache=False) as session:
            kept = ExportRepository(session, tenant_id).add(
                models.Export(
                    tenant_id=tenant_id,
                    calibration_id=served.ref.id,
                    samples=parity.samples,
                    classes=parity.classes,
                    bins=parity.bins,
                    probability=parity.probability,
                ),
                NewArtifact("export", 0, "model.onnx", key, stored.sha256, stored.size),
            )
            enforce_quotas(session, tenant_id, replace(limits, jobs=0))
    except OutcomeUnknown:
        # There may be a row that refers to them; if there is none, they are swept.
        raise
    except BaseException:
        workspace.artifacts.delete([key])
        raise
    if not kept:
        workspace.artifacts.delete([key])


@contextmanager
def exported_companion(
    workspace: Workspace, tenant_id: uuid.UUID, reference: str, name: str
) -> Iterator[Path]:
    """Give a file of external weights, under the name the model knows it by.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration or file, or it has not succeeded.
    """
    with workspace.database.reading() as session:
        row = CalibrationRepository(session, tenant_id).find_ready(reference)
    stored = next(
        (file for file in row.artifacts if file.role == "model_data" and file.label == name), None
    )
    if stored is None:
        raise NotFound(f"The model of calibration {row.id} has no file of this name.")
    with ExitStack() as opened:
        with _found(workspace, tenant_id, row.id):
            path = opened.enter_context(workspace.artifacts.local_path(stored.key, stored.sha256))
        yield path
