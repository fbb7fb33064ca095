"""Compare the calibrator with other libraries on the same arrays: time, memory, scores, lines.

    pip install netcal mapie probmetrics numba scikit-learn torch-uncertainty  # or some of them
    python benchmarks/library_beside_peers.py [--outputs FILE.npz] [--repeats 3]

FILE.npz holds `logits` and `labels`, of which the first half calibrates and the rest judges; by
default a network of scikit-learn reads handwritten digits. Each contender is the code that a user
writes, run in a process of its own; its lines are counted, and its time starts after the imports.
Seconds are CPU time, the least of the repeats; memory is what the process grew by. Scores are of
the probabilities of all classes, clipped at 1e-7 for logarithms.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

RANGES = 15
LEAST = 1e-7
MEGABYTE = 1024


@dataclass(frozen=True)
class Contender:
    """What a user writes: imports, the fit, and the probabilities of all classes."""

    package: str
    imports: str
    fit: str
    predict: str

    @property
    def lines(self) -> int:
        """Lines that are not empty."""
        code = f"{self.imports}\n{self.fit}\n{self.predict}"
        return sum(bool(line.strip()) for line in code.splitlines())


SKLEARN = """
class Outputs(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self
    def decision_function(self, X):
        return X
    def predict_proba(self, X):
        return softmax(X, axis=1)
    def predict(self, X):
        return X.argmax(axis=1)
model = FrozenEstimator(Outputs().fit(logits, labels))
"""
SKLEARN_IMPORTS = """
import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
"""
CONTENDERS = {
    "raw softmax": Contender(
        "scipy", "from scipy.special import softmax", "", "p = softmax(test, axis=1)"
    ),
    "Howsure": Contender(
        "howsure",
        "from howsure import Calibrator",
        "calibrator = Calibrator('logits').fit(logits, labels)",
        "p = calibrator.predict_proba(test)",
    ),
    "Howsure, `learned` alone, 2 folds": Contender(
        "howsure",
        "from howsure import Calibrator",
        "calibrator = Calibrator(measures=('learned',), folds=2, bins=15).fit(logits, labels)",
        "p = calibrator.predict_proba(test)",
    ),
    "netcal: temperature": Contender(
        "netcal",
        "from netcal.scaling import TemperatureScaling\nfrom scipy.special import softmax",
        "calibrator = TemperatureScaling()\ncalibrator.fit(softmax(logits, axis=1), labels)",
        "p = calibrator.transform(softmax(test, axis=1))",
    ),
    "netcal: histogram": Contender(
        "netcal",
        "from netcal.binning import HistogramBinning\nfrom scipy.special import softmax",
        "calibrator = HistogramBinning(bins=15)\ncalibrator.fit(softmax(logits, axis=1), labels)",
        "p = calibrator.transform(softmax(test, axis=1))",
    ),
    "scikit-learn: isotonic": Contender(
        "sklearn",
        SKLEARN_IMPORTS + "from sklearn.calibration import CalibratedClassifierCV",
        SKLEARN + "calibrator = CalibratedClassifierCV(model, method='isotonic')\n"
        "calibrator.fit(logits, labels)",
        "p = calibrator.predict_proba(test)",
    ),
    "scikit-learn: temperature": Contender(
        "sklearn",
        SKLEARN_IMPORTS + "from sklearn.calibration import CalibratedClassifierCV",
        SKLEARN + "calibrator = CalibratedClassifierCV(model, method='temperature')\n"
        "calibrator.fit(logits, labels)",
        "p = calibrator.predict_proba(test)",
    ),
    "MAPIE: Venn-Abers": Contender(
        "mapie",
        SKLEARN_IMPORTS + "from mapie.calibration import VennAbersCalibrator",
        SKLEARN + "calibrator = VennAbersCalibrator(estimator=model, inductive=True, cv='prefit')\n"
        "calibrator.fit(logits, labels)",
        "p = calibrator.predict_proba(test)",
    ),
    "probmetrics: temperature": Contender(
        "probmetrics",
        "from probmetrics.calibrators import get_calibrator\nfrom scipy.special import softmax",
        "calibrator = get_calibrator('temp-scaling')\n"
        "calibrator.fit(softmax(logits, axis=1), labels)",
        "p = calibrator.predict_proba(softmax(test, axis=1))",
    ),
    "probmetrics: structured matrix": Contender(
        "probmetrics",
        "from probmetrics.calibrators import get_calibrator\nfrom scipy.special import softmax",
        "calibrator = get_calibrator('sms')\ncalibrator.fit(softmax(logits, axis=1), labels)",
        "p = calibrator.predict_proba(softmax(test, axis=1))",
    ),
    "torch-uncertainty: temperature": Contender(
        "torch_uncertainty",
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "from torch_uncertainty.post_processing import TemperatureScaler",
        "data = TensorDataset(torch.tensor(logits), torch.tensor(labels))\n"
        "calibrator = TemperatureScaler(torch.nn.Identity())\n"
        "calibrator.fit(DataLoader(data, batch_size=len(logits)), progress=False)",
        "p = calibrator(torch.tensor(test)).softmax(-1).detach().numpy()",
    ),
}
DISTRIBUTIONS = {"sklearn": "scikit-learn", "torch_uncertainty": "torch-uncertainty"}


@dataclass(frozen=True)
class Outcome:
    """What one contender cost and gave."""

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
    shown = np.log(np.maximum(network.predict_proba(images[150:]), 1e-30))
    return {"logits": shown.astype(np.float32), "labels": labels[150:]}


def scores(p: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return scores of a distribution over all classes."""
    each = np.arange(len(labels))
    hits, said = p.argmax(axis=1) == labels, p.max(axis=1)
    ranges = np.clip(np.ceil(said * RANGES).astype(int) - 1, 0, RANGES - 1)
    gaps = [abs(hits[ranges == r].sum() - said[ranges == r].sum()) for r in range(RANGES)]
    return {
        "nll": float(-np.log(np.clip(p[each, labels], LEAST, None)).mean()),
        "brier": float((np.square(p).sum(axis=1) - 2.0 * p[each, labels] + 1.0).mean()),
        "ece": float(np.sum(gaps) / len(labels)),
    }


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE


def run(name: str, path: Path, repeats: int) -> Outcome:
    """Run a contender in this process."""
    contender, arrays = CONTENDERS[name], np.load(path)
    half = len(arrays["labels"]) // 2
    values: dict[str, object] = {
        "logits": arrays["logits"][:half],
        "labels": arrays["labels"][:half].astype(np.int64),
        "test": arrays["logits"][half:],
    }
    exec(contender.imports, values)  # noqa: S102 - the code of this file
    before, times = peak(), []
    for _ in range(repeats):
        start = time.process_time()
        exec(contender.fit, values)  # noqa: S102 - as above
        fitted = time.process_time()
        exec(contender.predict, values)  # noqa: S102 - as above
        times.append((fitted - start, time.process_time() - fitted))
    p = np.asarray(values["p"], np.float64)
    fit, predict = (min(column) for column in zip(*times, strict=True))
    judged = scores(p, arrays["labels"][half:].astype(np.int64))
    return Outcome(fit, predict, peak() - before, **judged)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outputs", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--contender", help=argparse.SUPPRESS)
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
        for name, contender in CONTENDERS.items():
            if find_spec(contender.package) is None:
                print(f"| {name} | not installed |")
                continue
            command = [sys.executable, __file__, "--contender", name, "--outputs", str(path)]
            done = subprocess.run(  # noqa: S603 - this file
                [*command, "--repeats", str(options.repeats)],
                check=False,
                capture_output=True,
                text=True,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            )
            if done.returncode:
                print(f"| {name} | {done.stderr.strip().splitlines()[-1]} |")
                continue
            of = Outcome(**json.loads(done.stdout.splitlines()[-1]))
            package = DISTRIBUTIONS.get(contender.package, contender.package)
            label = name if package == "howsure" else f"{name}, {version(package)}"
            print(
                f"| {label} | {contender.lines} | {of.fit:.3f} | {of.predict:.4f} | "
                f"{of.megabytes:.0f} | {of.nll:.4f} | {of.brier:.4f} | {of.ece:.4f} |"
            )


if __name__ == "__main__":
    main()
