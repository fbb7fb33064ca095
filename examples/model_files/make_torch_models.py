"""Export the small models in this folder from PyTorch, with reference logits.

Not run by the tests, which need no PyTorch: the files are committed. To make them again::

    python -m venv /tmp/torch && /tmp/torch/bin/pip install torch==2.13.0 onnxscript
    /tmp/torch/bin/python examples/model_files/make_torch_models.py

Weights are random from a fixed seed; the references are the module's own logits in float64.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn

FOLDER = Path(__file__).parents[2] / "tests/data/onnx"
N_CLASSES = 7


class SmallNet(nn.Module):
    """A convolution, a pooling and two dense layers; a softmax at the end if asked."""

    def __init__(self, *, softmax: bool) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3)
        self.hidden = nn.Linear(36, 32)
        self.dropout = nn.Dropout(0.2)
        self.last = nn.Linear(32, N_CLASSES)
        self.softmax = nn.Softmax(dim=1) if softmax else nn.Identity()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = torch.relu(self.convolution(images))
        features = torch.max_pool2d(features, 2).flatten(1)
        features = self.dropout(torch.relu(self.hidden(features)))
        return self.softmax(4 * self.last(features))


def make_network(*, softmax: bool) -> SmallNet:
    torch.manual_seed(5)
    return SmallNet(softmax=softmax).eval()


def export(name: str, opset: int, *, dynamo: bool, softmax: bool = False, **options: Any) -> None:
    """Export by tracing, or by ``torch.export``; the number of rows is free unless it is fixed."""
    batch = torch.export.Dim("batch") if dynamo else "batch"
    axes = {"dynamic_shapes": {"images": {0: batch}}}
    if not dynamo:
        axes = {"dynamic_axes": {"images": {0: batch}, "scores": {0: batch}}}
    torch.onnx.export(
        make_network(softmax=softmax),
        (torch.zeros(4, 1, 8, 8),),
        FOLDER / name,
        dynamo=dynamo,
        opset_version=opset,
        input_names=["images"],
        output_names=["scores"],
        **axes | options,
    )


def forget_paths(names: str) -> None:
    """Remove the exporter's stack traces, which name folders of this machine."""
    for path in FOLDER.glob(names):
        model = onnx.load(path, load_external_data=False)
        for noted in (model, model.graph, *model.graph.node, *model.graph.value_info):
            del noted.metadata_props[:]
            noted.doc_string = ""
        path.write_bytes(model.SerializeToString())


def write_references() -> None:
    images = np.random.default_rng(8).normal(size=(12, 1, 8, 8)).astype(np.float32)
    network = make_network(softmax=False).double()
    with torch.no_grad():
        logits = network(torch.from_numpy(images.astype(np.float64))).numpy()
    np.savez(FOLDER / "references.npz", images=images, logits=logits)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    export("torch_legacy_11.onnx", 11, dynamo=False)
    export("torch_legacy_17_softmax.onnx", 17, dynamo=False, softmax=True)
    inside = {"dynamo": True, "external_data": False}
    export("torch_dynamo_18_external.onnx", 18, dynamo=True, external_data=True)
    export("torch_dynamo_23_softmax.onnx", 23, softmax=True, **inside)
    export("torch_dynamo_18_fixed.onnx", 18, dynamic_shapes=None, **inside)
    forget_paths("torch_*.onnx")
    write_references()
