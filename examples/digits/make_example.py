"""Make the digits example: a small classifier, new labelled sets, and a first request.

scikit-learn's 1,797 handwritten digits (8 x 8 pixels, values 0 to 16) are split by a seed into 597
images for training, 600 for calibration and 600 for evaluation. The network is trained far past its
best epoch and without regularisation: it is right about 19 times in 20, and overconfident.

    python make_example.py [--folder FOLDER] [--external-folder FOLDER]

Needs scikit-learn, onnx, onnxruntime and numpy. ``--external-folder`` also writes the same network
with its weights in a companion file, as torch's exporter does by default.
"""

import argparse
import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

HERE = Path(__file__).resolve().parent
SEED = 20240607
N_TRAINING = 597
N_CALIBRATION = 600
N_PIXELS = 64
N_CLASSES = 10
LARGEST_PIXEL = 16.0
HIDDEN_UNITS = 32
EPOCHS = 400
ECE_BINS = 15
OPSET = 17
IR_VERSION = 8

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]
Logits = NDArray[np.float32]


@dataclass(frozen=True)
class LabelledSet:
    """Images of shape (n, 64) with values 0 to 16, and the digit each one shows."""

    inputs: Images
    labels: Labels


def split_digits() -> dict[str, LabelledSet]:
    """Return the training, calibration and evaluation parts; no image is in two of them."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(labels))
    parts = np.split(order, [N_TRAINING, N_TRAINING + N_CALIBRATION])
    return {
        name: LabelledSet(images[rows].astype(np.uint8), labels[rows].astype(np.int64))
        for name, rows in zip(("training", "calibration", "evaluation"), parts, strict=True)
    }


def train(training: LabelledSet) -> MLPClassifier:
    """Fit the network to the training part for a fixed number of epochs, to over-confidence."""
    network = MLPClassifier(
        (HIDDEN_UNITS,),
        alpha=0.0,
        learning_rate_init=0.01,
        max_iter=EPOCHS,
        n_iter_no_change=EPOCHS,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return network.fit(training.inputs / LARGEST_PIXEL, training.labels)


def to_onnx(network: MLPClassifier) -> onnx.ModelProto:
    """Write the network as a plain graph: raw pixels in, logits out, the scaling inside."""
    constants = {"pixel_scale": np.float32(1 / LARGEST_PIXEL)}
    for layer, (weight, bias) in enumerate(
        zip(network.coefs_, network.intercepts_, strict=True), start=1
    ):
        constants[f"weight_{layer}"] = weight.astype(np.float32)
        constants[f"bias_{layer}"] = bias.astype(np.float32)
    nodes = [
        helper.make_node("Mul", ["inputs", "pixel_scale"], ["scaled"]),
        helper.make_node("Gemm", ["scaled", "weight_1", "bias_1"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Gemm", ["active", "weight_2", "bias_2"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("inputs", TensorProto.FLOAT, ["N", N_PIXELS])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", N_CLASSES])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    onnx_model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="howsure examples/digits",
    )
    classes = json.dumps([str(digit) for digit in range(N_CLASSES)])
    helper.set_model_props(onnx_model, {"classes": classes})
    onnx.checker.check_model(onnx_model, full_check=True)
    return onnx_model


def run(onnx_model: onnx.ModelProto, inputs: Images) -> Logits:
    """Return the logits ONNX Runtime computes on the CPU."""
    session = onnxruntime.InferenceSession(
        onnx_model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    logits: Logits = session.run(["logits"], {"inputs": inputs.astype(np.float32)})[0]
    return logits


def softmax(logits: Logits) -> NDArray[np.float64]:
    """Return the probabilities of each row, in float64."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    probabilities: NDArray[np.float64] = shifted / shifted.sum(axis=1, keepdims=True)
    return probabilities


def numbers(logits: Logits, labels: Labels) -> dict[str, float]:
    """Return the accuracies, and how well the softmax maximum tells them (15 equal bins)."""
    probabilities = softmax(logits)
    confidence = probabilities.max(axis=1)
    hits = probabilities.argmax(axis=1) == labels
    bins = np.clip(np.ceil(confidence * ECE_BINS).astype(int) - 1, 0, ECE_BINS - 1)
    gaps = np.bincount(bins, weights=hits - confidence, minlength=ECE_BINS)
    top_5 = np.argsort(-probabilities, axis=1, kind="stable")[:, :5]
    return {
        "Top-1 accuracy": float(hits.mean()),
        "Top-5 accuracy": float((top_5 == labels[:, None]).any(axis=1).mean()),
        "mean confidence": float(confidence.mean()),
        "ECE-15": float(np.abs(gaps).sum() / len(labels)),
        "NLL": float(-np.log(probabilities[np.arange(len(labels)), labels]).mean()),
    }


def first_request(evaluation: LabelledSet, logits: Logits) -> dict[str, object]:
    """Return a /predict body of two images: the surest, and the one with the closest runner-up."""
    ranked = np.sort(logits, axis=1)
    margins = ranked[:, -1] - ranked[:, -2]
    rows = [int(margins.argmax()), int(margins.argmin())]
    return {"calibration": "digits", "inputs": evaluation.inputs[rows].tolist()}


def write_outputs(path: Path, labels: Labels, logits: Logits) -> None:
    """Write labels and logits as CSV, with the nine digits that bring a float32 back exactly."""
    header = ",".join(["label", *(f"logit_{digit}" for digit in range(N_CLASSES))])
    rows = [
        ",".join([str(label), *(f"{value:.9g}" for value in row)])
        for label, row in zip(labels.tolist(), logits.tolist(), strict=True)
    ]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def make_example(folder: Path, external_folder: Path | None) -> list[str]:
    """Write all files and return the lines of a table with the network's numbers."""
    parts = split_digits()
    onnx_model = to_onnx(train(parts["training"]))
    logits = {name: run(onnx_model, part.inputs) for name, part in parts.items()}

    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx_model, folder / "model.onnx")
    for name in ("calibration", "evaluation"):
        part = parts[name]
        np.savez_compressed(folder / f"{name}.npz", inputs=part.inputs, labels=part.labels)
    calibration = parts["calibration"]
    write_outputs(folder / "calibration_logits.csv", calibration.labels, logits["calibration"])
    request = first_request(parts["evaluation"], logits["evaluation"])
    (folder / "request.json").write_text(json.dumps(request) + "\n", encoding="utf-8")
    if external_folder is not None:
        write_external(onnx_model, external_folder)

    measured = {name: numbers(logits[name], parts[name].labels) for name in parts}
    lines = ["| part | images | " + " | ".join(measured["training"]) + " |"]
    lines.append("|---" * (len(measured["training"]) + 2) + "|")
    for name, found in measured.items():
        values = " | ".join(f"{value:.4f}" for value in found.values())
        lines.append(f"| {name} | {len(parts[name].labels)} | {values} |")
    return lines


def write_external(onnx_model: onnx.ModelProto, folder: Path) -> None:
    """Write the network with its weights in ``model_external.onnx.data``."""
    folder.mkdir(parents=True, exist_ok=True)
    # onnx appends to a companion that is already there.
    (folder / "model_external.onnx.data").unlink(missing_ok=True)
    copy = onnx.ModelProto.FromString(onnx_model.SerializeToString())
    onnx.save(
        copy,
        folder / "model_external.onnx",
        save_as_external_data=True,
        location="model_external.onnx.data",
        size_threshold=0,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make the digits example.")
    parser.add_argument("--folder", type=Path, default=HERE)
    parser.add_argument("--external-folder", type=Path)
    arguments = parser.parse_args()
    print("\n".join(make_example(arguments.folder, arguments.external_folder)))
