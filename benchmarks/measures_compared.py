"""Compare how well each measure finds a model's errors, and its cost, through the whole service.

    python benchmarks/measures_compared.py [FOLDER] [--passes 20] [--directions 16]

FOLDER holds ``model.onnx``, ``model_dropout.onnx``, ``ensemble_0.onnx`` and so on,
``calibration_float32.npz`` and ``evaluation_float32.npz``; without one, the small digit networks
of ``tests/data/passes`` are used. Each model is calibrated by a service in this process; the tables
come from its reports. AUROC is of the measure against the errors of the Top-1 prediction (errors
positive) on the evaluation half. Runs of the whole model, and milliseconds, are those of a row's
prediction and measure together. Accuracy and NLL are of the mean probability of the passes if there
is one, otherwise of the model itself.
"""

import argparse
import io
import os
import platform
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnxruntime
from scipy.stats import rankdata

from howsure.client import Client
from howsure.statistics.measures import SINGLE_PASS_MEASURES
from service.cli.connection import Address, running
from service.cli.failure import EMBEDDED_URL
from service.cli.local import prepare
from service.settings import Settings

PASSES = Path(__file__).parent.parent / "tests" / "data" / "passes"
BATCH = 500
DROPOUT = ("dropout_variance", "last_layer_dropout_variance")
ENSEMBLE = ("ensemble_variance", "neg_log_pmax")


@dataclass(frozen=True)
class Study:
    """The files: a model, the same with dropout, an ensemble, and two labelled sets."""

    plain: Path
    dropout: Path
    members: tuple[Path, ...]
    calibration: bytes
    evaluation: bytes


@dataclass(frozen=True)
class Case:
    """The files of one upload, and the requested measures."""

    name: str
    models: tuple[Path, ...]
    measures: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """The result of a case: the calibration's resource and its report."""

    case: Case
    resource: dict[str, Any]
    report: dict[str, Any]


def study_of(folder: Path) -> Study:
    return Study(
        plain=folder / "model.onnx",
        dropout=folder / "model_dropout.onnx",
        members=tuple(sorted(folder.glob("ensemble_*.onnx"))),
        calibration=(folder / "calibration_float32.npz").read_bytes(),
        evaluation=(folder / "evaluation_float32.npz").read_bytes(),
    )


def digits() -> Study:
    sets = np.load(PASSES / "digits_passes.npz")
    return Study(
        plain=PASSES / "small_cnn.onnx",
        dropout=PASSES / "hidden_dropout_cnn.onnx",
        members=tuple(sorted(PASSES.glob("member_[0-9].onnx"))),
        calibration=as_npz(sets["calibration_inputs"], sets["calibration_labels"]),
        evaluation=as_npz(sets["evaluation_inputs"], sets["evaluation_labels"]),
    )


def as_npz(inputs: np.ndarray, labels: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, inputs=inputs, labels=labels)
    return file.getvalue()


def cases(study: Study) -> tuple[Case, ...]:
    return (
        Case(study.plain.name, (study.plain,), (*SINGLE_PASS_MEASURES, "gradient_norm")),
        Case(study.dropout.name, (study.dropout,), DROPOUT),
        Case(f"ensemble_of_{len(study.members)}", study.members, ENSEMBLE),
    )


def calibrated(client: httpx.Client, study: Study, case: Case, blocks: dict[str, Any]) -> Found:
    caller = Client(http=client)
    made = caller.calibrate(
        case.models,
        study.calibration,
        evaluation=study.evaluation,
        name=case.name,
        measures=case.measures,
        top_k=[1],
        **blocks,
    )
    return Found(case, dict(made.resource), caller.report(made))


def quality_rows(found: Found) -> Iterator[str]:
    """Yield a line for each measure of the case."""
    event = found.report["events"]["1"]
    scores = found.report["model_scores"]["evaluation"]
    costs = {row["measure"]: row for row in event["comparison"]}
    for measure in found.case.measures:
        auroc = event["measures"][measure]["evaluation"]["auroc"]
        last = (scores["passes"].get(measure) or [{"passes": 1, "accuracy": None}])[-1]
        mean = scores if last["accuracy"] is None else last
        cost = costs[measure]
        yield (
            f"| {found.case.name} | `{measure}` | {last['passes']} | {cost['passes']} "
            f"| {cost['ms_per_row']:.3f} | {auroc:.4f} | {mean['accuracy']['1']:.4f} "
            f"| {mean['nll']:.4f} |"
        )


def pass_rows(found: Found) -> Iterator[str]:
    """Yield a line for each number of passes of the measures of several passes."""
    for measure, rows in found.report["model_scores"]["evaluation"]["passes"].items():
        for row in rows:
            accuracy = None if row["accuracy"] is None else row["accuracy"]["1"]
            cells = (row["auroc"]["1"], accuracy, row["nll"])
            shown = " | ".join("-" if cell is None else f"{cell:.4f}" for cell in cells)
            yield f"| {found.case.name} | `{measure}` | {row['passes']} | {shown} |"


def max_softmax_auroc(study: Study) -> float:
    """Return how well 1 - max softmax finds the plain model's errors, without the service."""
    data = np.load(io.BytesIO(study.evaluation))
    session = onnxruntime.InferenceSession(study.plain, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    starts = range(0, len(data["labels"]), BATCH)
    inputs = data["inputs"]
    logits = [session.run(None, {name: inputs[start : start + BATCH]})[0] for start in starts]
    shifted = np.concatenate(logits).astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    errors = shifted.argmax(axis=1) != data["labels"]
    ranks = rankdata(np.log(np.exp(shifted).sum(axis=1)))  # -log of the largest probability
    n_errors, n_hits = int(errors.sum()), int((~errors).sum())
    return float((ranks[errors].sum() - n_errors * (n_errors + 1) / 2) / (n_errors * n_hits))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--directions", type=int, default=16)
    options = parser.parse_args()
    study = digits() if options.folder is None else study_of(options.folder)
    blocks = {
        "dropout": {"passes": options.passes},
        "gradient": {"directions": options.directions},
    }
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder), device="cpu", _env_file=None)
        prepare(settings)
        address = Address(EMBEDDED_URL, str(Path(folder, "http.sock")))
        with running(settings, uds=address.uds), address.client() as client:
            found = [calibrated(client, study, case, blocks) for case in cases(study)]
    print_tables(found, max_softmax_auroc(study))


def print_tables(found: list[Found], max_softmax: float) -> None:
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f},", end=" ")
    print(f"Python {platform.python_version()}, onnxruntime {onnxruntime.__version__};", end=" ")
    print(f"1 - max softmax by onnxruntime and ranks alone: AUROC {max_softmax:.4f}\n")
    print("| model | measure | passes | runs of the model | ms a row | AUROC | accuracy | NLL |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for case in found:
        print(*quality_rows(case), sep="\n")
    print("\n| model | measure | the first passes | AUROC | accuracy | NLL |")
    print("|---|---|---:|---:|---:|---:|")
    for case in found:
        for line in pass_rows(case):
            print(line)


if __name__ == "__main__":
    main()
