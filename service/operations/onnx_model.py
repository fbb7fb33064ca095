"""What an upload's ONNX model turns out to be, before anything is kept of it."""

from dataclasses import asdict, dataclass
from typing import Any

from service.datasets import Batch
from service.graph.output import LIKE_PROBABILITIES
from service.graph.quote import quote_all
from service.operations.available_measures import asked_outputs
from service.operations.config import CalibrationConfig
from service.operations.fit_config import DEFAULT_TOP_K
from service.operations.uploads import CalibrationUpload
from service.operations.workspace import Workspace
from service.runner import LoadedOnnxModel, OnnxModelFiles

TRIAL_ROWS = 256


@dataclass(frozen=True)
class InspectedOnnxModel:
    """The model as the resource shows it, its number of classes, their names, and doubts."""

    description: dict[str, Any]
    n_classes: int
    class_names: list[str]
    warnings: list[str]


def inspect_onnx_model(
    workspace: Workspace,
    upload: CalibrationUpload,
    config: CalibrationConfig,
    trial: Batch,
) -> InspectedOnnxModel:
    """Load the model in a child process and run it on the first samples.

    Raises
    ------
    InvalidOnnxModel, InvalidConfig, InvalidInput
        If it is no classifier that can be served as asked, or the samples do not suit its inputs.
    InferenceFailed
        If it does not load, or does not answer in time.
    """
    model = upload.onnx_models[0]
    files = OnnxModelFiles(
        path=model.path,
        companions={c.label: c.path for c in upload.companions},
        sha256=model.sha256,
        companion_sha256={c.label: c.sha256 for c in upload.companions},
    )
    loaded = workspace.runners.inspect(
        files,
        output=config.output.model_dump(exclude_none=True),
        top_k=config.top_k or DEFAULT_TOP_K,
        scalar_outputs=asked_outputs(config),
        trial=trial.arrays,
        location="calibration",
    )
    found = loaded.description
    labels = found.class_labels or ()
    if len(labels) != loaded.n_classes:
        labels = tuple(range(loaded.n_classes))
    return InspectedOnnxModel(
        description={
            "label": model.label,
            "sha256": model.sha256,
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
            "device": workspace.runners.device().name,
            "resolved": loaded.resolved,
        },
        n_classes=loaded.n_classes,
        class_names=[str(label) for label in labels],
        warnings=_warnings(loaded, upload),
    )


def _warnings(loaded: LoadedOnnxModel, upload: CalibrationUpload) -> list[str]:
    warnings = []
    if LIKE_PROBABILITIES in loaded.output.inferred:
        warnings.append(
            f"output.kind says logits, but {LIKE_PROBABILITIES}: a softmax of probabilities "
            "is no classifier's; leave the kind out, or say probabilities."
        )
    unused = {found.label for found in upload.companions} - {*loaded.description.external_files}
    if unused:
        warnings.append(
            f"model_data: the model refers to no file named {quote_all(sorted(unused))}."
        )
    return warnings
