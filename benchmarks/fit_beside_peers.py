"""Compare the cost of fitting with other libraries that do part of it, in one run on one machine.

    pip install netcal torchmetrics probmetrics numba scikit-learn   # missing ones are skipped
    python benchmarks/fit_beside_peers.py [--samples 50000] [--classes 1000] [--repeats 3]

Each contender runs in its own process, so that memory and imports are its own. The clock starts
after data are loaded and libraries imported. `1-D` contenders get the top-1 confidence and the
hits; `matrix` contenders all logits or probabilities. Seconds are CPU time of the process, the
minimum of the repeats; `peak` is the largest growth of memory.
"""

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

BINS = 15
BLOCK = 1024
ROOT = Path(__file__).parent.parent

Work = Callable[[], str]


def draw(folder: Path, n: int, classes: int) -> None:
    """Write logits, probabilities, labels, confidences and hits of an overconfident classifier."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, n)
    logits = np.lib.format.open_memmap(folder / "logits.npy", "w+", np.float32, (n, classes))
    probs = np.lib.format.open_memmap(folder / "probs.npy", "w+", np.float32, (n, classes))
    for start in range(0, n, BLOCK):
        rows = slice(start, min(n, start + BLOCK))
        z = rng.standard_normal((rows.stop - start, classes), dtype=np.float32)
        z[np.arange(len(z)), labels[rows]] += rng.normal(4.7, 2.2, len(z)).astype(np.float32)
        logits[rows] = 2.5 * z
        e = np.exp(logits[rows] - logits[rows].max(axis=1, keepdims=True))
        probs[rows] = e / e.sum(axis=1, keepdims=True)
    np.save(folder / "labels.npy", labels)
    np.save(folder / "conf.npy", np.asarray(probs).max(axis=1))
    np.save(folder / "hits.npy", np.asarray(probs).argmax(axis=1) == labels)


def ours_1d(load: Callable[[str], np.ndarray]) -> Work:
    from howsure.statistics.bins.fit import fit_bin_table
    from howsure.statistics.fit.cross_validation import predict_with_table
    from howsure.statistics.scores import SCORES

    uncertainty, hits = -np.log(load("conf")), load("hits")

    def work() -> str:
        table = fit_bin_table(uncertainty, hits, n_bins=BINS)
        return f"ECE {SCORES['ece'].compute(predict_with_table(table, uncertainty, hits)):.4f}"

    return work


def _records(load: Callable[[str], np.ndarray]):  # noqa: ANN202 - imported inside
    from howsure.statistics.records.build import build_records
    from howsure.statistics.records.order import tie_keys
    from howsure.statistics.records.records import concatenate

    logits, labels = load("logits"), load("labels")

    def build():  # noqa: ANN202 - as above
        return concatenate(
            [
                build_records(
                    logits[start : start + BLOCK].astype(np.float64),
                    labels[start : start + BLOCK],
                    tie_keys=tie_keys(logits[start : start + BLOCK], 0),
                    top_k=(1, 5),
                )
                for start in range(0, len(labels), BLOCK)
            ]
        )

    return build


def ours_records(load: Callable[[str], np.ndarray]) -> Work:
    build = _records(load)
    return lambda: f"{build().n_samples} records"


def ours_temperature(load: Callable[[str], np.ndarray]) -> Work:
    from howsure.statistics.calibrators.temperature import fit_temperature
    from howsure.statistics.records.order import stratified_folds

    records = _records(load)()
    folds = stratified_folds(records.hits(1), records.tie_key, n_folds=10)

    def work() -> str:
        for fold in range(10):
            rows = np.flatnonzero(folds != fold)
            fit_temperature(records.log_sum_exp[rows], records.label_logit[rows])
        return "one T a fold"

    return work


def ours_everything(load: Callable[[str], np.ndarray]) -> Work:
    from howsure.statistics.fit.calibration import fit_calibration
    from howsure.statistics.fit.options import FitOptions

    build = _records(load)

    def work() -> str:
        fit = fit_calibration(build(), options=FitOptions())
        event = fit.events[1]
        ece = event.measures[event.served].scores["ece"].mean
        return f"{sum(len(e.measures) for e in fit.events.values())} tables, ECE {ece:.4f}"

    return work


def netcal_histogram(load: Callable[[str], np.ndarray]) -> Work:
    from netcal.binning import HistogramBinning
    from netcal.metrics.confidence import ECE

    conf, hits = load("conf"), load("hits").astype(np.int64)

    def work() -> str:
        fitted = HistogramBinning(bins=BINS).fit(conf, hits)
        return f"ECE {float(ECE(BINS).measure(fitted.transform(conf), hits)):.4f}"

    return work


def netcal_ece_matrix(load: Callable[[str], np.ndarray]) -> Work:
    from netcal.metrics.confidence import ECE

    probs, labels = load("probs"), load("labels")
    return lambda: f"ECE {float(ECE(BINS).measure(probs, labels)):.4f}"


def sklearn_isotonic(load: Callable[[str], np.ndarray]) -> Work:
    from sklearn.calibration import calibration_curve
    from sklearn.isotonic import IsotonicRegression

    conf, hits = load("conf"), load("hits")

    def work() -> str:
        fitted = IsotonicRegression(out_of_bounds="clip").fit(conf, hits)
        calibration_curve(hits, np.clip(fitted.predict(conf), 0, 1), n_bins=BINS)
        return "fit, predict, curve"

    return work


def torchmetrics_ece(load: Callable[[str], np.ndarray]) -> Work:
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    conf, hits = torch.from_numpy(load("conf")), torch.from_numpy(load("hits").astype(np.int64))
    return lambda: f"ECE {float(binary_calibration_error(conf, hits, n_bins=BINS)):.4f}"


def torchmetrics_ece_matrix(load: Callable[[str], np.ndarray]) -> Work:
    import torch
    from torchmetrics.functional.classification import multiclass_calibration_error

    probs, labels = torch.from_numpy(load("probs")), torch.from_numpy(load("labels"))

    def work() -> str:
        error = multiclass_calibration_error(probs, labels, num_classes=probs.shape[1], n_bins=BINS)
        return f"ECE {float(error):.4f}"

    return work


def probmetrics_temperature(load: Callable[[str], np.ndarray]) -> Work:
    import torch
    from probmetrics.calibrators import get_calibrator
    from probmetrics.distributions import CategoricalLogits

    logits, labels = torch.from_numpy(load("logits")), torch.from_numpy(load("labels"))

    def work() -> str:
        get_calibrator("temp-scaling").fit_torch(CategoricalLogits(logits), labels)
        return "one T"

    return work


def sklearn_temperature(load: Callable[[str], np.ndarray]) -> Work:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    logits, labels = load("logits"), load("labels")

    class Scores(ClassifierMixin, BaseEstimator):
        """A fitted classifier whose scores are its inputs."""

        classes_ = np.arange(logits.shape[1])

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def fit(self, *_: object) -> "Scores":
            return self

        def decision_function(self, x: np.ndarray) -> np.ndarray:
            return x

        def predict(self, x: np.ndarray) -> np.ndarray:
            return x.argmax(axis=1)

    def work() -> str:
        CalibratedClassifierCV(FrozenEstimator(Scores()), method="temperature").fit(logits, labels)
        return "one T"

    return work


CONTENDERS: dict[str, tuple[str, str, Callable[..., Work]]] = {
    "Howsure: 15 bins, intervals, predict, ECE": ("1-D", "", ours_1d),
    "netcal: histogram of 15, predict, ECE": ("1-D", "netcal", netcal_histogram),
    "scikit-learn: isotonic, predict, curve": ("1-D", "sklearn", sklearn_isotonic),
    "torchmetrics: ECE alone": ("1-D", "torchmetrics", torchmetrics_ece),
    "Howsure: records of all samples": ("matrix", "", ours_records),
    "Howsure: temperature, 10 folds, from records": ("records", "", ours_temperature),
    "Howsure: records, all tables, baselines, 10-fold scores": ("matrix", "", ours_everything),
    "netcal: ECE alone": ("matrix", "netcal", netcal_ece_matrix),
    "torchmetrics: ECE alone, all classes": ("matrix", "torchmetrics", torchmetrics_ece_matrix),
    "probmetrics: one temperature": ("matrix", "probmetrics", probmetrics_temperature),
    "scikit-learn: one temperature": ("matrix", "sklearn", sklearn_temperature),
}


def peak_mebibytes() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def run_one(name: str, folder: Path, repeats: int) -> None:
    """Run a contender in this process and print its cost."""
    sys.path.insert(0, str(ROOT))
    work = CONTENDERS[name][2](lambda array: np.load(folder / f"{array}.npy"))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts from here
    before, seconds, says = peak_mebibytes(), [], ""
    for _ in range(repeats):
        start = time.process_time()
        says = work()
        seconds.append(time.process_time() - start)
    found = {"seconds": min(seconds), "peak": peak_mebibytes() - before, "says": says}
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        run_one(options.one, options.folder, options.repeats)
        return
    print(f"{options.samples} samples, {options.classes} classes, float32 logits", end=" ")
    print(f"({options.samples * options.classes * 4 / 1024**2:.0f} MiB); ", end="")
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, one thread\n")
    print("| contender | input | CPU s | peak MiB | |")
    print("|---|---|---:|---:|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw(folder, options.samples, options.classes)
        for contender, (kind, package, _) in CONTENDERS.items():
            print(f"| {contender} | {kind} | {measure(contender, package, folder, options)} |")


def measure(contender: str, package: str, folder: Path, options: argparse.Namespace) -> str:
    if package and importlib.util.find_spec(package) is None:
        return "| | not installed"
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "--one", contender, "--folder", str(folder)]
    done = subprocess.run(  # noqa: S603 - ourselves
        [*command, "--repeats", str(options.repeats)],
        env=os.environ | threads,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return f"| | failed: {done.stderr.strip().splitlines()[-1][:80]}"
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return f"{found['seconds']:.3f} | {found['peak']:.0f} | {found['says']}"


if __name__ == "__main__":
    main()
