"""Inspection of an uploaded ONNX model."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

from howsure.statistics.findings.evidence import Finding
from howsure.statistics.findings.outputs import said_to_be_logits
from howsure.statistics.measures import output_names
from service.calibrations.config import CalibrationConfig, pass_plans
from service.calibrations.fit_config import DEFAULT_TOP_K
from service.calibrations.upload.upload_form import CalibrationUpload
from service.errors import DeadlineExceeded, InvalidOnnxModel, ModelRule, OnnxModelCrashed
from service.graph.description import LIKE_PROBABILITIES, quote_all
from service.runner.messages.dataset import Batch
from service.runner.messages.onnx_models import LoadedOnnxModel, OnnxModelFiles, with_table_columns
from service.runner.messages.set_messages import TRIAL_ROWS
from service.runner.model_description import costs_of
from service.workspace import Workspace


@dataclass(frozen=True)
class InspectedOnnxModel:
    """The model as the resource shows it, its classes, warnings and findings.

    ``description`` and ``files`` are None where the model's outputs were uploaded.
    """

    description: dict[str, Any] | None
    n_classes: int
    class_names: list[str]
    warnings: list[str]
    findings: list[Finding] = field(default_factory=list)
    files: OnnxModelFiles | None = None

    @property
    def input_names(self) -> list[str]:
        """Names of the model's inputs."""
        return [tensor["name"] for tensor in (self.description or {}).get("inputs", ())]

    def with_columns(self, columns: Mapping[str, list[str]]) -> "InspectedOnnxModel":
        """Return the model with these table columns of its inputs."""
        about = self.description or {}
        resolved = with_table_columns(about["resolved"], columns)
        return replace(self, description={**about, "resolved": resolved})

    @property
    def own_names(self) -> list[str] | None:
        """The model's own names of its classes; None if it has none but their indices."""
        indices = [str(index) for index in range(self.n_classes)]
        return None if self.class_names == indices else self.class_names


def inspect_onnx_model(
    workspace: Workspace,
    tenant_id: UUID,
    upload: CalibrationUpload,
    config: CalibrationConfig,
    trial: Batch,
    *,
    columns: Mapping[str, list[str]] | None = None,
    n_samples: int | None = None,
) -> InspectedOnnxModel | None:
    """Load the model, or the members of an ensemble, in a child process; run the first samples.

    ``columns`` are the table columns of each input, stored with the model. The first samples are
    those of a set of ``n_samples``. Return None where no model was uploaded.

    Raises
    ------
    InvalidOnnxModel, InvalidConfig, InvalidInput
        If it is no classifier that can be served as asked, the samples do not suit its inputs, or
        it does not load and answer them in time.
    InferenceFailed, Overloaded
        If models cannot be run here, or not now.
    """
    files = upload.model_files(str(tenant_id))
    if files is None:
        return None
    with _model_failures_as_invalid():
        loaded = workspace.runners.inspect(
            files,
            trial.arrays,
            output_name=config.output.name,
            output_kind=config.output.kind,
            decision_threshold=config.decision_threshold,
            top_k=tuple(config.top_k or DEFAULT_TOP_K),
            scalar_outputs=output_names(config.measures),
            passes=pass_plans(config),
            preprocessing=None if config.preprocessing is None else config.preprocessing.resolved(),
            table_columns=columns,
            of_rows=n_samples,
        )
    labels = loaded.description.class_labels or ()
    if len(labels) != loaded.n_classes:
        labels = tuple(range(loaded.n_classes))
    return InspectedOnnxModel(
        description=_description(loaded, upload, columns, workspace.runners.device().name),
        n_classes=loaded.n_classes,
        class_names=[str(label) for label in labels],
        warnings=_warnings(loaded, upload),
        findings=_findings(loaded, trial),
        files=files,
    )


@contextmanager
def _model_failures_as_invalid() -> Iterator[None]:
    """Answer that the model is invalid if it hangs or crashes: another attempt would not help."""
    try:
        yield
    except DeadlineExceeded as error:
        raise InvalidOnnxModel.because(
            ModelRule.TOO_SLOW,
            "it did not load and answer the first rows in the time it has; send a faster one, or "
            "have HOWSURE_TRIAL_TIMEOUT_SECONDS and HOWSURE_LOAD_TIMEOUT_SECONDS raised",
        ) from error
    except OnnxModelCrashed as error:
        if error.is_from_outside:
            raise
        raise InvalidOnnxModel.because(
            ModelRule.CRASHED,
            "the process that loaded it and ran the first rows died of it; load it with "
            "ONNX Runtime where you export it, and send a smaller model if memory ran out",
        ) from error


def _description(
    loaded: LoadedOnnxModel,
    upload: CalibrationUpload,
    columns: Mapping[str, list[str]] | None,
    device: str,
) -> dict[str, Any]:
    """Return the stored description of the model, of an ensemble that of its first member."""
    description, first = loaded.description, upload.onnx_models[0]
    members = [{"label": m.label, "sha256": m.sha256} for m in upload.onnx_models]
    return {
        "label": first.label,
        "sha256": first.sha256,
        "members": members if len(members) > 1 else [],
        "inputs": [asdict(tensor) for tensor in description.inputs],
        "outputs": [asdict(tensor) for tensor in description.outputs],
        "classes": loaded.n_classes,
        "opset": description.opset,
        "ir_version": description.ir_version,
        "fixed_batch": description.fixed_batch,
        "parameters": description.parameters,
        "bytes": sum(file.size for file in (*upload.onnx_models, *upload.companions)),
        "output": {
            "name": loaded.output.name,
            "kind": loaded.output.kind,
            "inferred": loaded.output.inferred,
        },
        "provider": loaded.provider,
        "device": device,
        "costs": costs_of(loaded),
        "resolved": with_table_columns(loaded.resolved, columns),
    }


def _warnings(loaded: LoadedOnnxModel, upload: CalibrationUpload) -> list[str]:
    warnings = _duplicate_warnings(upload)
    unused = {file.label for file in upload.companions} - {*loaded.description.external_files}
    # An ensemble's external files are known for the first member only.
    if unused and len(upload.onnx_models) == 1:
        warnings.append(
            f"model_data: the model refers to no file named {quote_all(sorted(unused))}."
        )
    if loaded.description.one_by_one:
        warnings.append(f"model: {loaded.description.one_by_one}.")
    elif loaded.description.fixed_batch == 1:
        warnings.append(
            "model: its batch size is fixed at 1, so it runs one row at a time. With a free batch "
            "size a small model often takes a tenth of the time per row: see "
            "docs/getting-started.md#2-export-the-model."
        )
    return warnings


def _findings(loaded: LoadedOnnxModel, trial: Batch) -> list[Finding]:
    findings = []
    if LIKE_PROBABILITIES in loaded.output.inferred:
        findings.append(said_to_be_logits(min(len(trial.labels), TRIAL_ROWS)))
    if loaded.labels is not None:
        findings.append(loaded.labels.finding())
    return findings


def _duplicate_warnings(upload: CalibrationUpload) -> list[str]:
    """Return a warning if a file was sent twice."""
    digests = [model.sha256 for model in upload.onnx_models]
    twins = [str(i) for i, digest in enumerate(digests) if digest in digests[:i]]
    if not twins:
        return []
    warning = (
        f"model: the parts {', '.join(twins)}, counted from 0, are the same as ones before them; "
        "a member that is there twice counts twice and adds no variance."
    )
    return [warning]
