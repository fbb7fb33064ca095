"""What an ONNX model says of itself."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from service.graph.quote import quote


@dataclass(frozen=True)
class TensorSpec:
    """A graph input or output.

    ``dtype`` is numpy's name of the type ("str" for text, "sequence", "map" and the like for what
    is no tensor, "unknown" where the file does not say). ``shape`` has None for a free dimension,
    and is itself None where the rank is not declared.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        """Return name, type and shape on one line, for messages."""
        if self.shape is None:
            return f"{quote(self.name)} {self.dtype}"
        dimensions = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{quote(self.name)} {self.dtype} ({dimensions})"


@dataclass(frozen=True)
class OnnxModelDescription:
    """An ONNX model's interface and versions.

    ``fixed_batch`` is the number of rows the graph insists on, None where any number will do.
    ``class_labels`` are those a classifier node carries, in the order of the score columns.
    ``external_files`` are the plain names of the files that hold weights beside the model.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    opset: int
    ir_version: int
    class_labels: tuple[int, ...] | tuple[str, ...] | None
    external_files: tuple[str, ...]
    fixed_batch: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "OnnxModelDescription":
        """Rebuild what ``as_dict`` gave, also after a trip through JSON."""
        labels = values["class_labels"]
        return cls(
            inputs=tuple(_tensor_spec(entry) for entry in values["inputs"]),
            outputs=tuple(_tensor_spec(entry) for entry in values["outputs"]),
            opset=values["opset"],
            ir_version=values["ir_version"],
            class_labels=None if labels is None else tuple(labels),
            external_files=tuple(values["external_files"]),
            fixed_batch=values["fixed_batch"],
        )


def _tensor_spec(values: Mapping[str, Any]) -> TensorSpec:
    shape = values["shape"]
    return TensorSpec(
        name=values["name"],
        dtype=values["dtype"],
        shape=None if shape is None else tuple(shape),
    )
