"""A finished calibration as one ONNX file, made once and compared with the service."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import models
from service.errors import ArtifactDamaged, Conflict, InferenceFailed, NotFound, OutcomeUnknown
from service.operations.export_contents import export_spec, exportable_model
from service.operations.export_parity import Parity, compare_answers, require_parity
from service.operations.kept_samples import KeptSamples
from service.operations.load_served import is_deleted, load_served
from service.operations.predict import answers_of
from service.operations.served import ServedCalibration
from service.operations.tenants import NO_LIMITS, TenantLimits
from service.operations.tenants.quotas import hold_to_limits
from service.operations.workspace import Workspace
from service.runner.frames import Array
from service.storage.artifact_rows import NewArtifact
from service.storage.calibrations import CalibrationRepository
from service.storage.exports import ExportRepository, KeptExport

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
        with workspace.database.session(is_news=False) as session:
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
            hold_to_limits(session, tenant_id, replace(limits, jobs=0))
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
