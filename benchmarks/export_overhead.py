"""Measure what calibration adds to one run of a model, in one file.

    python benchmarks/export_overhead.py [--classes 10 1000] [--batch 32] [--bins 100]

The model is the ResNet-18 of dropout_cost.py, with random weights, for images of 32 x 32: the
cheapest network of that shape, so the added nodes weigh most. Two events are calibrated. Three
graphs run in this process on one CPU thread, in turns: the raw file; the calibrated file; and the
added nodes alone on the class scores of the raw file, once after the model has filled the caches,
as in the file, and several times more (warm). Milliseconds are CPU time of a batch, the minimum of
the repeats. The added nodes alone are more precise than the difference of two long runs.
"""

import argparse
import os
import platform
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
from dropout_cost import Timed, resnet18
from onnx import TensorProto, helper

from howsure.onnx_head.spec import ExportEvent, ExportSpec
from howsure.statistics.bins.fit import fit_bin_table
from service.graph.description import OutputChoice
from service.graph.export import build_export_graph
from service.graph.load import load_onnx_model

COLUMNS = {1: "entropy", 5: "neg_log_topk_mass_5"}
LOOKUPS = ("step", "interpolated")
CALIBRATION_ROWS = 5000
WARMING_RUNS = 5


def make_spec(n_classes: int, n_bins: int, lookup: str) -> ExportSpec:
    """Return tables of made-up uncertainties: only their size matters here."""
    rng = np.random.default_rng(0)
    events = []
    for k, column in COLUMNS.items():
        uncertainty = rng.gamma(2.0, size=CALIBRATION_ROWS).astype(np.float32)
        hits = rng.random(CALIBRATION_ROWS) < np.exp(-uncertainty / 4)
        table = fit_bin_table(uncertainty, hits, n_bins=n_bins)
        events.append(ExportEvent(k, column, replace(table, lookup=lookup)))
    risks = (("0.05", 1.0), ("0.01", 0.5))
    return ExportSpec(
        events=tuple(events),
        n_top=5,
        n_classes=n_classes,
        ood_threshold=9.0,
        accept_thresholds=risks,
        metadata={},
    )


def scores_alone(n_classes: int) -> bytes:
    """Return a file that outputs its input, the class scores."""
    kind, shape = TensorProto.FLOAT, ["N", n_classes]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["scores"], ["logits"])],
        "scores",
        [helper.make_tensor_value_info("scores", kind, shape)],
        [helper.make_tensor_value_info("logits", kind, shape)],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def calibrated(data: bytes, n_classes: int, spec: ExportSpec) -> onnx.ModelProto:
    choice = OutputChoice("logits", "logits", "logits", "its name", n_classes=n_classes)
    return build_export_graph(load_onnx_model(data), choice, spec, {})


def added_nodes(n_classes: int, spec: ExportSpec) -> onnx.ModelProto:
    """Return the nodes that calibration adds, without a second output of the scores."""
    model = calibrated(scores_alone(n_classes), n_classes, spec)
    del model.graph.output[0]
    return model


def measure(n_classes: int, batch: int, n_bins: int, repeats: int) -> list[str]:
    """Return the lines of the table."""
    data = resnet18(n_classes)
    images = np.random.default_rng(1).random((batch, 3, 32, 32), dtype=np.float32)
    raw = Timed(load_onnx_model(data), images)
    (scores,) = raw.outputs
    timed = {}
    for lookup in LOOKUPS:
        spec = make_spec(n_classes, n_bins, lookup)
        model = calibrated(data, n_classes, spec)
        grown = (model.ByteSize() - len(data)) / 1000
        nodes = added_nodes(n_classes, spec)
        timed[lookup] = (Timed(model, images), Timed(nodes, scores), Timed(nodes, scores), grown)
    for _ in range(repeats):
        raw.run()
        for whole, alone, warm, _ in timed.values():
            whole.run()
            alone.run()
            for _ in range(WARMING_RUNS):
                warm.run()
    return [
        f"| {n_classes} | {batch} | {lookup} | {raw.milliseconds:.2f} | {alone.milliseconds:.2f} "
        f"| {alone.milliseconds / raw.milliseconds:.1%} | {warm.milliseconds:.2f} "
        f"| {warm.milliseconds / raw.milliseconds:.1%} | {whole.milliseconds:.2f} "
        f"| {whole.milliseconds / raw.milliseconds - 1:+.1%} | {grown:.1f} |"
        for lookup, (whole, alone, warm, grown) in timed.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 1000])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--bins", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, one thread,", end=" ")
    print(f"Python {platform.python_version()}, onnxruntime {onnxruntime.__version__};", end=" ")
    print(f"{len(COLUMNS)} events of {options.bins} bins\n")
    print("| classes | batch | lookup | raw, ms | added, ms | share", end=" ")
    print("| added warm, ms | share | whole, ms | more | kB |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for n_classes in options.classes:
        for batch in options.batch:
            for line in measure(n_classes, batch, options.bins, options.repeats):
                print(line)


if __name__ == "__main__":
    main()
