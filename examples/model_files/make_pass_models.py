"""Train and export the models of `tests/data/passes`, with exact gradient norms of one of them.

Not run by the tests, which need no PyTorch: the files are committed. To make them again::

    python -m venv /tmp/torch
    /tmp/torch/bin/pip install torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 scikit-learn==1.9.1
    /tmp/torch/bin/python examples/model_files/make_pass_models.py

Seeds are fixed and one thread is used, so the same versions on the same kind of machine write the
same weights again.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from networks import (
    SEQUENCE_CLASSES,
    VOCABULARY,
    SequenceClassifier,
    VariationalLinear,
    member,
    small_cnn,
    squeezenet_like,
    variational_mlp,
)
from onnx import numpy_helper
from sklearn.datasets import load_digits
from torch import nn

FOLDER = Path(__file__).parents[2] / "tests/data/passes"
SEED = 20240607
N_TRAINING = 597
N_CALIBRATION = 600
N_GRADIENTS = 300
LARGEST_PIXEL = 16.0
BATCH = 32


@dataclass(frozen=True)
class LabelledSet:
    """Samples and their classes, as tensors."""

    inputs: torch.Tensor
    labels: torch.Tensor

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        return {f"{name}_inputs": self.inputs.numpy(), f"{name}_labels": self.labels.numpy()}


def digits() -> dict[str, LabelledSet]:
    """Return scikit-learn's digits, split as in ``examples/digits``, as images from 0 to 1."""
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels.reshape(-1, 1, 8, 8) / LARGEST_PIXEL).astype(np.float32)
    order = np.random.default_rng(SEED).permutation(len(labels))
    return cut(images[order], labels[order].astype(np.int64))


def sequences() -> dict[str, LabelledSet]:
    """Return rows of 12 tokens; the class is the third of the vocabulary most of them are from.

    Ties go to the lower class, and one row in ten has a class drawn at random.
    """
    rng = np.random.default_rng(SEED)
    tokens = rng.integers(0, VOCABULARY, (N_TRAINING + 2 * N_CALIBRATION, 12))
    third = tokens // (VOCABULARY // SEQUENCE_CLASSES)
    labels = (third[:, :, None] == np.arange(SEQUENCE_CLASSES)).sum(axis=1).argmax(axis=1)
    noisy = rng.random(len(labels)) < 0.1
    return cut(tokens, np.where(noisy, rng.integers(0, SEQUENCE_CLASSES, len(labels)), labels))


def cut(inputs: np.ndarray, labels: np.ndarray) -> dict[str, LabelledSet]:
    ends = [N_TRAINING, N_TRAINING + N_CALIBRATION]
    parts = zip(np.split(inputs, ends), np.split(labels, ends), strict=True)
    return {
        name: LabelledSet(*map(torch.from_numpy, part))
        for name, part in zip(("training", "calibration", "evaluation"), parts, strict=True)
    }


def trained(
    make: Callable[[], nn.Module], data: LabelledSet, *, epochs: int = 15, seed: int = 0
) -> nn.Module:
    """Return the network after so many epochs of Adam; too few for perfection, on purpose."""
    torch.manual_seed(seed)
    network = make().train()
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(data.labels)).split(BATCH):
            loss = nn.functional.cross_entropy(network(data.inputs[rows]), data.labels[rows])
            loss = loss + divergence(network) / len(data.labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return network


def divergence(network: nn.Module) -> torch.Tensor:
    """Return the KL divergence of the layers that have one: equation 1 of Blundell et al."""
    layers = [layer for layer in network.modules() if isinstance(layer, VariationalLinear)]
    return sum((layer.divergence() for layer in layers), torch.zeros(()))


def export(
    network: nn.Module,
    name: str,
    example: torch.Tensor,
    *,
    opset: int = 17,
    active: bool = False,
    dynamo: bool = False,
) -> None:
    """Export by tracing, or by ``torch.export``.

    ``active`` keeps Dropout, and the network in training mode.
    """
    modes, axes = torch.onnx.TrainingMode, free_axes(example)
    options = {
        "training": modes.TRAINING if active else modes.EVAL,
        "do_constant_folding": not active,
        "dynamic_axes": {"inputs": axes, "logits": {0: "batch"}},
    }
    if dynamo:
        shapes = {axis: torch.export.Dim(of) for axis, of in axes.items()}
        options = {"dynamic_shapes": (shapes,), "external_data": False}
    torch.onnx.export(
        network.train(active),
        (example,),
        FOLDER / name,
        dynamo=dynamo,
        opset_version=opset,
        input_names=["inputs"],
        output_names=["logits"],
        **options,
    )


def free_axes(example: torch.Tensor) -> dict[int, str]:
    """Return the axes of any length: the rows, and of tokens their number."""
    return {0: "batch"} if example.is_floating_point() else {0: "batch", 1: "tokens"}


def forget_paths() -> None:
    """Remove the exporter's stack traces, which name folders of this machine."""
    for path in FOLDER.glob("*.onnx"):
        model = onnx.load(path)
        for noted in (model, model.graph, *model.graph.node, *model.graph.value_info):
            del noted.metadata_props[:]
            noted.doc_string = ""
        path.write_bytes(model.SerializeToString())


def gradient_norms(network: nn.Module, inputs: torch.Tensor) -> np.ndarray:
    """Return the 2-norm of the gradient of the probabilities' 2-norm by the input, in float64."""
    rows = inputs.double().requires_grad_()
    norms = torch.softmax(network.double().eval()(rows), dim=1).norm(dim=1)
    (gradient,) = torch.autograd.grad(norms.sum(), rows)
    network.float()
    return gradient.flatten(1).norm(dim=1).numpy()


def check_same_weights(network: nn.Module, name: str) -> None:
    """Check that the file holds the network's own weights, bit for bit."""
    stored = {t.name: numpy_helper.to_array(t) for t in onnx.load(FOLDER / name).graph.initializer}
    for key, value in network.state_dict().items():
        np.testing.assert_array_equal(stored[key], value.numpy())


def export_networks(images: LabelledSet, tokens: LabelledSet) -> nn.Module:
    """Train and export all networks; return the one that the gradients are taken of."""
    image = images.inputs[:4]
    plain = trained(small_cnn, images)
    export(plain, "small_cnn.onnx", image)

    last = trained(lambda: small_cnn(before_last=nn.Dropout(0.25)), images)
    export(last, "last_layer_dropout_cnn.onnx", image, active=True)
    noise = {"after_first": nn.Dropout(0.1), "after_second": nn.Dropout(0.3)}
    hidden = trained(lambda: small_cnn(**noise), images)
    export(hidden, "hidden_dropout_cnn.onnx", image, opset=13, active=True)
    export(hidden, "hidden_dropout_cnn_dynamo.onnx", image, opset=23, active=True, dynamo=True)
    spatial = trained(lambda: small_cnn(after_first=nn.Dropout2d(0.25)), images)
    export(spatial, "spatial_dropout.onnx", image, opset=18, active=True, dynamo=True)
    squeezed = trained(squeezenet_like, images, epochs=60)
    export(squeezed, "squeezenet_like.onnx", image, active=True)

    variational = trained(variational_mlp, images, epochs=40)
    export(variational, "variational_mlp.onnx", image)
    export(variational, "variational_mlp_dynamo.onnx", image, opset=23, dynamo=True)
    export_members(images)

    reader = trained(SequenceClassifier, tokens, epochs=30)
    export(reader, "sequence_dropout.onnx", tokens.inputs[:4], active=True)
    return plain


def export_members(images: LabelledSet) -> None:
    """Train and export an ensemble of three, and two that do not belong in it."""
    image = images.inputs[:4]
    for number, units in enumerate((12, 16, 20)):
        network = trained(lambda units=units: member(units), images, seed=10 + number)
        export(network, f"member_{number}.onnx", image)
    below_nine = images.labels < 9
    fewer = LabelledSet(images.inputs[below_nine], images.labels[below_nine])
    other = trained(lambda: member(12, n_classes=9), fewer)
    export(other, "member_other_classes.onnx", image)
    flat = LabelledSet(images.inputs.flatten(1), images.labels)
    other = trained(lambda: member(12, flat=True), flat)
    export(other, "member_other_input.onnx", flat.inputs[:4])


def main() -> None:
    """Make everything."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    images, tokens = digits(), sequences()
    plain = export_networks(images["training"], tokens["training"])
    forget_paths()
    check_same_weights(plain, "small_cnn.onnx")
    for name, parts in (("digits_passes", images), ("sequences", tokens)):
        kept = parts["calibration"].arrays("calibration") | parts["evaluation"].arrays("evaluation")
        np.savez_compressed(FOLDER / f"{name}.npz", **kept)
    inputs = images["evaluation"].inputs[:N_GRADIENTS]
    norms = gradient_norms(plain, inputs)
    np.savez_compressed(FOLDER / "gradients.npz", inputs=inputs.numpy(), gradient_norm=norms)


if __name__ == "__main__":
    main()
