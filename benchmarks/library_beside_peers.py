"""Compare the calibrator with other libraries on the same arrays: time, memory, scores, lines.

    pip install netcal mapie probmetrics numba scikit-learn torch-uncertainty  # or some of them
    python benchmarks/library_beside_peers.py [--outputs FILE.npz] [--repeats 3]

FILE.npz holds `logits` and `labels`. The first half calibrates and the second half is for the
scores. By default a network of scikit-learn classifies handwritten digits. All contenders get
logits in float64: the optimiser of netcal stalls in float32.

Each contender is a function that imports, fits, and returns how to predict. Its lines are those of
its body. It runs in a process of its own, and its time starts after the imports. Seconds are CPU
time, the least of the repeats; memory is the growth of the process. Scores are of the probabilities
of all classes, clipped at 1e-7 for logarithms. The row `chance` always predicts the class
frequencies of the calibration half: a calibrator without any information scores the same.
"""

import argparse
import ast
import importlib
import inspect
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

RANGES = 15
LEAST = 1e-7
MEGABYTE = 1024

Predict = Callable[[np.ndarray], np.ndarray]
Fit = Callable[[np.ndarray, np.ndarray], Predict]


def class_frequencies(logits: np.ndarray, labels: np.ndarray) -> Predict:
    shares = np.bincount(labels, minlength=logits.shape[1]) / len(labels)
    return lambda test: np.tile(shares, (len(test), 1))


def raw_softmax(_logits: np.ndarray, _labels: np.ndarray) -> Predict:
    from scipy.special import softmax

    return lambda test: softmax(test, axis=1)


def howsure_default(logits: np.ndarray, labels: np.ndarray) -> Predict:
    from howsure import Calibrator

    calibrator = Calibrator("logits").fit(logits, labels)
    return calibrator.predict_proba


def howsure_learned(logits: np.ndarray, labels: np.ndarray) -> Predict:
    from howsure import Calibrator

    calibrator = Calibrator(measures=("learned",), folds=2, bins=15).fit(logits, labels)
    return calibrator.predict_proba


def netcal_temperature(logits: np.ndarray, labels: np.ndarray) -> Predict:
    from netcal.scaling import TemperatureScaling
    from scipy.special import softmax

    calibrator = TemperatureScaling()
    calibrator.fit(softmax(logits, axis=1), labels)
    return lambda test: calibrator.transform(softmax(test, axis=1))


def netcal_histogram(logits: np.ndarray, labels: np.ndarray) -> Predict:
    from netcal.binning import HistogramBinning
    from scipy.special import softmax

    calibrator = HistogramBinning(bins=15)
    calibrator.fit(softmax(logits, axis=1), labels)
    return lambda test: calibrator.transform(softmax(test, axis=1))


def frozen_classifier(logits: np.ndarray, labels: np.ndarray) -> Any:  # noqa: ANN401 - untyped
    """Return a fitted classifier of scikit-learn whose inputs are the logits."""
    from scipy.special import softmax
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils.multiclass import unique_labels

    class Outputs(ClassifierMixin, BaseEstimator):
        def fit(self, _X, y):  # noqa: ANN001, ANN202, N803 - names of scikit-learn
            self.classes_ = unique_labels(y)
            return self

        def decision_function(self, X):  # noqa: ANN001, ANN202, N803 - as above
            return X

        def predict_proba(self, X):  # noqa: ANN001, ANN202, N803 - as above
            return softmax(X, axis=1)

        def predict(self, X):  # noqa: ANN001, ANN202, N803 - as above
            return X.argmax(axis=1)

    return FrozenEstimator(Outputs().fit(logits, labels))


def sklearn_isotonic(logits: np.ndarray, labels: np.ndarray) -> Predict:
    from sklearn.calibration import CalibratedClassifierCV

    calibrator = CalibratedClassifierCV(frozen_classifier(logits, labels), method="isotonic")
    calibrator.fit(logits, labels)
    return calibrator.predict_proba


def sklearn_temperature(logits: np.ndarray, labels: np.ndarray) -> Predict:
    from sklearn.calibration import CalibratedClassifierCV

    calibrator = CalibratedClassifierCV(frozen_classifier(logits, labels), method="temperature")
    calibrator.fit(logits, labels)
    return calibrator.predict_proba


def mapie_venn_abers(logits: np.ndarray, labels: np.ndarray) -> Predict:
    from mapie.calibration import VennAbersCalibrator

    calibrator = VennAbersCalibrator(
        estimator=frozen_classifier(logits, labels), inductive=True, cv="prefit"
    )
    calibrator.fit(logits, labels)
    return calibrator.predict_proba


def probmetrics_temperature(logits: np.ndarray, labels: np.ndarray) -> Predict:
    from probmetrics.calibrators import get_calibrator
    from scipy.special import softmax

    calibrator = get_calibrator("temp-scaling")
    calibrator.fit(softmax(logits, axis=1), labels)
    return lambda test: calibrator.predict_proba(softmax(test, axis=1))


def probmetrics_matrix(logits: np.ndarray, labels: np.ndarray) -> Predict:
    from probmetrics.calibrators import get_calibrator
    from scipy.special import softmax

    calibrator = get_calibrator("sms")
    calibrator.fit(softmax(logits, axis=1), labels)
    return lambda test: calibrator.predict_proba(softmax(test, axis=1))


def torch_uncertainty_temperature(logits: np.ndarray, labels: np.ndarray) -> Predict:
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    from torch_uncertainty.post_processing import TemperatureScaler

    data = TensorDataset(torch.tensor(logits), torch.tensor(labels))
    calibrator = TemperatureScaler(torch.nn.Identity())
    calibrator.fit(DataLoader(data, batch_size=len(logits)), progress=False)
    return lambda test: calibrator(torch.tensor(test)).softmax(-1).detach().numpy()


@dataclass(frozen=True)
class Contender:
    """A distribution, the function that fits it, and a function that this one calls."""

    distribution: str
    fit: Fit
    calls: Callable[..., Any] | None = None

    @property
    def package(self) -> str:
        """Name to import."""
        return {"scikit-learn": "sklearn"}.get(
            self.distribution, self.distribution.replace("-", "_")
        )

    @property
    def functions(self) -> list[ast.FunctionDef]:
        """The functions that a user would write."""
        functions = (self.fit,) if self.calls is None else (self.calls, self.fit)
        return [_parsed(function) for function in functions]

    @property
    def lines(self) -> int:
        """Lines of code in the bodies of the functions."""
        return sum(len(_body(function).splitlines()) for function in self.functions)

    def import_modules(self) -> None:
        """Import what the functions import."""
        for node in (node for function in self.functions for node in ast.walk(function)):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                importlib.import_module(node.module)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    importlib.import_module(alias.name)


def _parsed(function: Callable[..., Any]) -> ast.FunctionDef:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    return node


def _body(function: ast.FunctionDef) -> str:
    """Return the code of a body on one line a statement, without its docstring and comments."""
    statements = function.body[ast.get_docstring(function) is not None :]
    code = "\n".join(ast.unparse(statement) for statement in statements)
    return "\n".join(line for line in code.splitlines() if line.strip())


CONTENDERS = {
    "chance": Contender("numpy", class_frequencies),
    "raw softmax": Contender("scipy", raw_softmax),
    "Howsure": Contender("howsure", howsure_default),
    "Howsure, `learned` alone, 2 folds": Contender("howsure", howsure_learned),
    "netcal: temperature": Contender("netcal", netcal_temperature),
    "netcal: histogram": Contender("netcal", netcal_histogram),
    "scikit-learn: isotonic": Contender("scikit-learn", sklearn_isotonic, frozen_classifier),
    "scikit-learn: temperature": Contender("scikit-learn", sklearn_temperature, frozen_classifier),
    "MAPIE: Venn-Abers": Contender("mapie", mapie_venn_abers, frozen_classifier),
    "probmetrics: temperature": Contender("probmetrics", probmetrics_temperature),
    "probmetrics: structured matrix": Contender("probmetrics", probmetrics_matrix),
    "torch-uncertainty: temperature": Contender("torch-uncertainty", torch_uncertainty_temperature),
}


@dataclass(frozen=True)
class Outcome:
    """Cost and scores of one contender."""

    fit: float
    predict: float
    megabytes: float
    nll: float
    brier: float
    ece: float


def digits() -> dict[str, np.ndarray]:
    """Return outputs of an overconfident network for digits that it was not trained on."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order], labels[order]
    network = MLPClassifier((64,), alpha=0.0, max_iter=1000, tol=1e-5, random_state=0)
    network.fit(images[:150], labels[:150])
    logits = np.log(np.maximum(network.predict_proba(images[150:]), 1e-30))
    return {"logits": logits.astype(np.float32), "labels": labels[150:]}


def scores(p: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return scores of a distribution over all classes."""
    each = np.arange(len(labels))
    hits, confidence = p.argmax(axis=1) == labels, p.max(axis=1)
    ranges = np.clip(np.ceil(confidence * RANGES).astype(int) - 1, 0, RANGES - 1)
    gaps = [abs(hits[ranges == r].sum() - confidence[ranges == r].sum()) for r in range(RANGES)]
    return {
        "nll": float(-np.log(np.clip(p[each, labels], LEAST, None)).mean()),
        "brier": float((np.square(p).sum(axis=1) - 2.0 * p[each, labels] + 1.0).mean()),
        "ece": float(np.sum(gaps) / len(labels)),
    }


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE


def run(name: str, path: Path, repeats: int) -> Outcome:
    """Run a contender in this process."""
    contender = CONTENDERS[name]
    with np.load(path) as arrays:
        logits = arrays["logits"].astype(np.float64)
        labels = arrays["labels"].astype(np.int64)
    half = len(labels) // 2
    contender.import_modules()
    before, times = peak(), []
    for _ in range(repeats):
        start = time.process_time()
        predict = contender.fit(logits[:half], labels[:half])
        fitted = time.process_time()
        probabilities = predict(logits[half:])
        times.append((fitted - start, time.process_time() - fitted))
    growth = peak() - before
    fit, predict_time = (min(column) for column in zip(*times, strict=True))
    scored = scores(np.asarray(probabilities, np.float64), labels[half:])
    return Outcome(fit, predict_time, growth, **scored)


def row(name: str, path: Path, repeats: int) -> str:
    """Return the row of a contender, which runs in a process of its own."""
    contender = CONTENDERS[name]
    if find_spec(contender.package) is None:
        return f"| {name} | not installed |"
    command = [sys.executable, __file__, "--contender", name, "--outputs", str(path)]
    process = subprocess.run(  # noqa: S603 - runs this script
        [*command, "--repeats", str(repeats)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    if process.returncode:
        return f"| {name} | {process.stderr.strip().splitlines()[-1]} |"
    outcome = Outcome(**json.loads(process.stdout.splitlines()[-1]))
    is_peer = contender.distribution not in ("howsure", "numpy", "scipy")
    label = f"{name}, {version(contender.distribution)}" if is_peer else name
    return (
        f"| {label} | {contender.lines} | {outcome.fit:.3f} | {outcome.predict:.4f} | "
        f"{outcome.megabytes:.0f} | {outcome.nll:.4f} | {outcome.brier:.4f} | {outcome.ece:.4f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outputs", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        print(json.dumps(asdict(run(options.contender, options.outputs, options.repeats))))
        return
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors\n")
    print("| | lines | fit s | predict s | MB | NLL | Brier | ECE |\n|---|" + "---:|" * 7)
    with tempfile.TemporaryDirectory() as folder:
        path = options.outputs or Path(folder) / "digits.npz"
        if options.outputs is None:
            np.savez(path, **digits())
        for name in CONTENDERS:
            print(row(name, path, options.repeats), flush=True)


if __name__ == "__main__":
    main()
