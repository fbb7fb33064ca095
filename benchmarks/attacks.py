"""Measure how many attacked images ``jacobian_norm`` detects at 5 % false positives.

    python benchmarks/attacks.py [FOLDER] [--images 100] [--directions 16] [--seed 0]

FOLDER holds ``model.onnx``, ``calibration_float32.npz`` and ``evaluation_float32.npz``; without
one, the small digit network of ``tests/data/passes`` is used. The attacks change correctly
classified evaluation images until the model errs: PGD within an L2 ball, the attack of Carlini and
Wagner in L2, and the boundary attack of Brendel et al., which needs no gradients. None of them
knows of the measure. Gradients come from a backward graph, appended to a model of Conv, Relu,
MaxPool and Gemm nodes. Each threshold is that of a calibration: the 95 % quantile of a measure on
the calibration set. See Finlay and Oberman, Empirical Confidence Estimates, Table 4.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from attack.attacked_model import MEASURES, Attacked, BackwardGraph, Images, Labels
from attack.methods import (
    boundary,
    carlini_wagner,
    largest_distance,
    norms,
    pgd,
    smallest_pgd,
)
from numpy.typing import NDArray

from howsure.bins_document.pass_plan import PassPlan
from howsure.statistics.ranking import ADVERSARIAL_LEVEL, ood_thresholds, ranking_of
from service.child.onnx.gradient import plan_gradient

PASSES = Path(__file__).parent.parent / "tests" / "data" / "passes"
WIDE = 0.08


def attacks(
    model: Attacked, images: Images, labels: Labels, others: Images, seed: int
) -> Iterator[tuple[str, Images]]:
    """Yield each attack's name and its images."""
    rng = np.random.default_rng(seed)
    wide = WIDE * largest_distance(model, images)
    yield "PGD, smallest radius", smallest_pgd(model, images, labels, rng)
    yield f"PGD, radius {wide:.3g}", pgd(model, images, labels, wide, rng)
    yield "Carlini-Wagner", carlini_wagner(model, images, labels)
    yield "boundary", boundary(model, images, labels, others, rng)


def read_sets(folder: Path | None) -> tuple[onnx.ModelProto, list[NDArray[Any]]]:
    """Return the model, and inputs and labels of the calibration and of the evaluation set."""
    halves, keys = ("calibration", "evaluation"), ("inputs", "labels")
    if folder is None:
        with np.load(PASSES / "digits_passes.npz") as arrays:
            sets = [arrays[f"{half}_{key}"] for half in halves for key in keys]
        return onnx.load(PASSES / "small_cnn.onnx"), sets
    sets = []
    for half in halves:
        with np.load(folder / f"{half}_float32.npz") as arrays:
            sets += [arrays[key] for key in keys]
    return onnx.load(folder / "model.onnx"), sets


def main() -> None:
    """Attack and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--directions", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    proto, (calibration, _, evaluation, labels) = read_sets(options.folder)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    graph = BackwardGraph(proto).build().SerializeToString()
    session = onnxruntime.InferenceSession(graph, settings)
    first = PassPlan("jacobian_norm", options.directions, options.seed, step=1e-3)
    plan = plan_gradient(first, {session.get_inputs()[0].name: calibration[:100]})
    model = Attacked(session, float(calibration.min()), float(calibration.max()), plan)
    thresholds = {
        measure: ood_thresholds(ranking_of(values.astype(np.float32)))[ADVERSARIAL_LEVEL]
        for measure, values in model.measures(calibration).items()
    }
    right = np.flatnonzero(~model.errs(evaluation, labels))[: options.images]
    images, truth = evaluation[right], labels[right].astype(np.int64)
    print(f"| images | succeeded | median L2 | {' | '.join(f'`{name}`' for name in MEASURES)} |")
    print(f"|---|---:|---:|{'---:|' * len(MEASURES)}")

    def print_row(name: str, share: str, distance: str, own: Images) -> None:
        cells = [
            f"{np.mean(values > thresholds[measure]):.1%}"
            for measure, values in model.measures(own).items()
        ]
        print(f"| {' | '.join([name, share, distance, *cells])} |", flush=True)

    print_row("evaluation set", "-", "-", evaluation)
    for name, attacked in attacks(model, images, truth, calibration[:1000], options.seed):
        errs = model.errs(attacked, truth)
        distance = np.median(norms(attacked[errs] - images[errs]))
        print_row(name, f"{errs.mean():.1%}", f"{distance:.2f}", attacked[errs])


if __name__ == "__main__":
    main()
