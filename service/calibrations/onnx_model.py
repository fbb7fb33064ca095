"""What an upload's ONNX model turns out to be, before anything is kept of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from howsure.statistics.findings import Finding, said_to_be_logits
from service.calibrations.config import CalibrationConfig, pass_plans
from service.calibrations.fit_config import DEFAULT_TOP_K
from service.calibrations.set_checks import asked_outputs
from service.calibrations.uploaded_files import CalibrationUpload
from service.errors import DeadlineExceeded, InvalidOnnxModel, ModelRule, OnnxModelCrashed
from service.graph.description import LIKE_PROBABILITIES, quote_all
from service.runner.messages.dataset import Batch
from service.runner.messages.onnx_models import (
    LoadedOnnxModel,
    OnnxMember,
    OnnxModelFiles,
    with_table_columns,
)
from service.runner.messages.set_messages import TRIAL_ROWS
from service.runner.model_description import costs_of
from service.workspace import Workspace


@dataclass(frozen=True)
class InspectedOnnxModel:
    """The model as the resource shows it, its number of classes, their names, and doubts.

    There are no description and no files where the model's outputs were uploaded.
    """

    description: dict[str, Any] | None
    n_classes: int
    class_names: list[str]
    warnings: list[str]
    findings: list[Finding] = field(default_factory=list)
    files: OnnxModelFiles | None = None


def inspect_onnx_model(
    workspace: Workspace,
    upload: CalibrationUpload,
    config: CalibrationConfig,
    trial: Batch,
) -> InspectedOnnxModel:
    """Load the model, or the members of an ensemble, in a child process; run the first samples.

    Raises
    ------
    InvalidOnnxModel, InvalidConfig, InvalidInput
        If it is no classifier that can be served as asked, the samples do not suit its inputs, or
        it does not load and answer them in time.
    InferenceFailed, Overloaded
        If models cannot be run here, or not now.
    """
    files = _files(upload)
    with _the_model_s_own_fault():
        loaded = workspace.runners.inspect(
            files,
            output=config.output.model_dump(exclude_none=True),
            top_k=config.top_k or DEFAULT_TOP_K,
            scalar_outputs=asked_outputs(config),
            passes=pass_plans(config),
            preprocessing=None if config.preprocessing is None else config.preprocessing.resolved(),
            trial=trial.arrays,
            location="calibration",
        )
    labels = loaded.description.class_labels or ()
    if len(labels) != loaded.n_classes:
        labels = tuple(range(loaded.n_classes))
    return InspectedOnnxModel(
        description=_description(loaded, upload, config, workspace.runners.device().name),
        n_classes=loaded.n_classes,
        class_names=[str(label) for label in labels],
        warnings=_warnings(loaded, upload),
        findings=_findings(loaded, trial),
        files=files,
    )


@contextmanager
def _the_model_s_own_fault() -> Iterator[None]:
    """Refuse a model that hangs or ends its process, rather than to ask for another attempt."""
    try:
        yield
    except DeadlineExceeded as error:
        raise InvalidOnnxModel.because(
            ModelRule.TOO_SLOW,
            "it did not load and answer the first rows in the time it has; send a faster one, or "
            "have HOWSURE_LOAD_TIMEOUT_SECONDS raised",
        ) from error
    except OnnxModelCrashed as error:
        if error.is_from_outside:
            raise
        raise InvalidOnnxModel.because(
            ModelRule.CRASHED,
            "the process that loaded it and ran the first rows died of it; load it with "
            "ONNX Runtime where you export it, and send a smaller model if memory ran out",
        ) from error


def _files(upload: CalibrationUpload) -> OnnxModelFiles:
    model, *members = upload.onnx_models
    return OnnxModelFiles(
        path=model.path,
        companions={c.label: c.path for c in upload.companions},
        sha256=model.sha256,
        companion_sha256={c.label: c.sha256 for c in upload.companions},
        members=tuple(OnnxMember(member.path, member.sha256) for member in members),
        tenant=upload.tenant,
    )


def _description(
    loaded: LoadedOnnxModel, upload: CalibrationUpload, config: CalibrationConfig, device: str
) -> dict[str, Any]:
    """Return what is kept of the model; of an ensemble, what its first member is like."""
    found, first = loaded.description, upload.onnx_models[0]
    members = [{"label": m.label, "sha256": m.sha256} for m in upload.onnx_models]
    return {
        "label": first.label,
        "sha256": first.sha256,
        "members": members if len(members) > 1 else [],
        "inputs": [asdict(tensor) for tensor in found.inputs],
        "outputs": [asdict(tensor) for tensor in found.outputs],
        "classes": loaded.n_classes,
        "opset": found.opset,
        "ir_version": found.ir_version,
        "fixed_batch": found.fixed_batch,
        "output": {
            "name": loaded.output.name,
            "kind": loaded.output.kind,
            "inferred": loaded.output.inferred,
        },
        "provider": loaded.provider,
        "device": device,
        "costs": costs_of(loaded),
        "resolved": with_table_columns(loaded.resolved, config.columns),
    }


def _warnings(loaded: LoadedOnnxModel, upload: CalibrationUpload) -> list[str]:
    warnings = _twins(upload)
    unused = {found.label for found in upload.companions} - {*loaded.description.external_files}
    # Of an ensemble it is known for the first member alone.
    if unused and len(upload.onnx_models) == 1:
        warnings.append(
            f"model_data: the model refers to no file named {quote_all(sorted(unused))}."
        )
    return warnings


def _findings(loaded: LoadedOnnxModel, trial: Batch) -> list[Finding]:
    if LIKE_PROBABILITIES in loaded.output.inferred:
        return [said_to_be_logits(min(len(trial.labels), TRIAL_ROWS))]
    return []


def _twins(upload: CalibrationUpload) -> list[str]:
    """Return a warning where a file is there twice."""
    digests = [model.sha256 for model in upload.onnx_models]
    twins = [str(i) for i, digest in enumerate(digests) if digest in digests[:i]]
    if not twins:
        return []
    warning = (
        f"model: the parts {', '.join(twins)}, counted from 0, are the same as ones before them; "
        "a member that is there twice counts twice and adds no variance."
    )
    return [warning]
