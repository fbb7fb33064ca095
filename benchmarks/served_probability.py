"""Compare the served probability with calibrators that know no bins, on many models.

    python benchmarks/served_probability.py [FOLDER] [--sizes 200 600 2000 half] [--splits 5 3 1 1]

The models are trained here with scikit-learn, well, too little or too much, on data that comes with
it or is drawn. FOLDER adds trained networks: ``*.onnx`` from one float32 input to logits,
and ``calibration_float32.npz`` and ``evaluation_float32.npz`` with ``inputs`` and ``labels``.

Each model's outputs are split at random: the calibration is fitted to n samples with the default
options, and its report's evaluation scores on all other samples are read. NLL and Brier score of
the served Top-k probability are divided by the least of raw softmax, temperature, beta, quadratic
logistic and isotonic calibration, each clipped to [1 / (2n), 1 - 1 / (2n)]; and by that of
temperature alone. AUROC gain is that of error detection: `learned` minus the best single measure on
the evaluation samples.

The list of classes is judged by the NLL of all labels, divided by the least of raw softmax and,
where probmetrics is installed, temperature, structured vector (SVS) and structured matrix scaling
(SMS).

Among answers with a served probability of at least .98, it counts the wrong ones and the number of
wrong ones that these probabilities lead one to expect.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import EventFit
from howsure.statistics.label_model.recorded import recorded_odds, with_learned
from howsure.statistics.measures import LEARNED
from howsure.statistics.records.build import build_records
from howsure.statistics.records.order import tie_keys
from howsure.statistics.records.records import Records

try:  # pip install probmetrics
    from probmetrics.calibrators import get_calibrator
except ImportError:
    get_calibrator = None

RIVALS = ("raw_softmax", "temperature", "beta_calibration", "quadratic_logistic", "isotonic")
HALF = "half"
SIZES, SPLITS = ("200", "600", "2000", HALF), (5, 3, 1, 1)
LEAST_JUDGED = 300
MISSES = (2, 20)  # of Top-k with k > 1, in the calibration set
CERTAIN = 0.98
BATCH = 500
MOST_MATRIX = 60  # classes of SMS, which takes minutes of more


@dataclass(frozen=True)
class Outputs:
    """Outputs of one model and the labels: ``log p`` or logits, shape (n_samples, n_classes)."""

    name: str
    scores: np.ndarray
    labels: np.ndarray
    logits: bool = False

    def records(self, k: int = 1) -> Records:
        """Return the records, as a job makes them."""
        keys = tie_keys(self.scores, seed=0)
        return build_records(
            self.scores, self.labels, tie_keys=keys, top_k=(k,), logits=self.logits
        )


@dataclass(frozen=True)
class Row:
    """One model at one n, means over the splits: ratios to the best rival, and AUROCs.

    ``certain`` are answers with p >= .98, errors expected by it, their variance, and errors.
    """

    name: str
    n: str
    rival: str
    served: str
    nll: float
    brier: float
    to_temperature: float
    gain: float
    listed: float
    certain: np.ndarray


def trained(
    name: str, x: np.ndarray, y: np.ndarray, n_train: int, models: dict[str, Any]
) -> Iterator[Outputs]:
    """Yield the outputs of each model on the samples after the first ``n_train``."""
    for kind, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some are stopped early, to be badly calibrated
            model.fit(x[:n_train], y[:n_train])
            probabilities = model.predict_proba(x[n_train:])
        assert probabilities.shape[1] == y.max() + 1
        scores = np.log(np.maximum(probabilities, 1e-300)).astype(np.float32)
        yield Outputs(f"{name}, {kind}", scores, y[n_train:])


def mlp(width: int) -> MLPClassifier:
    """Return a network that is trained until it is overconfident."""
    return MLPClassifier((width,), alpha=1e-5, max_iter=600, random_state=0)


def digits() -> Iterator[Outputs]:
    """Yield models of 1,797 handwritten digits, trained on few of them."""
    order = np.random.default_rng(0).permutation(1797)
    data = load_digits()
    for n_train in (150, 400):
        yield from trained(
            f"digits {n_train}",
            data.data[order] / 16.0,
            data.target[order],
            n_train,
            {
                "logistic": LogisticRegression(C=100.0, max_iter=2000),
                "forest": RandomForestClassifier(100, random_state=0),
                "network": mlp(32),
                "naive Bayes": GaussianNB(var_smoothing=1e-3),
                "neighbours": KNeighborsClassifier(7),
                "discriminant": LinearDiscriminantAnalysis(),
            },
        )


def breast_cancer() -> Iterator[Outputs]:
    """Yield models of two classes, trained on 60 of 569 samples."""
    data = load_breast_cancer()
    order = np.random.default_rng(1).permutation(569)
    x = ((data.data - data.data.mean(axis=0)) / data.data.std(axis=0))[order]
    models = {
        "logistic": LogisticRegression(C=10.0),
        "forest": RandomForestClassifier(50, random_state=0),
        "naive Bayes": GaussianNB(),
        "boosting": HistGradientBoostingClassifier(max_iter=30, min_samples_leaf=5),
        "network": mlp(10),
    }
    yield from trained("breast cancer", x, data.target[order], 60, models)


def texts() -> Iterator[Outputs]:
    """Yield models of 20 groups of short texts, drawn as counts of 1,500 words."""
    rng = np.random.default_rng(1)
    n_groups, n_words, n_texts = 20, 1500, 14_000
    common = rng.dirichlet(np.full(n_words, 0.05))
    own = rng.dirichlet(np.full(n_words, 0.02), size=n_groups)
    alike = 0.65 * np.eye(n_groups) + 0.35 * rng.dirichlet(np.full(n_groups, 0.5), size=n_groups)
    words = alike @ (0.25 * own + 0.75 * common)
    labels = rng.integers(0, n_groups, n_texts)
    lengths = rng.integers(8, 40, n_texts)
    counts = np.stack([rng.multinomial(n, words[y]) for n, y in zip(lengths, labels, strict=True)])
    models = {
        "naive Bayes": MultinomialNB(alpha=0.01),
        "smoothed naive Bayes": MultinomialNB(alpha=1.0),
        "logistic": LogisticRegression(C=1.0, max_iter=300),
    }
    yield from trained("texts", counts.astype(np.float32), labels, 3000, models)


def drawn_classes() -> Iterator[Outputs]:
    """Yield models of scikit-learn's drawn clusters, 5 % of whose labels are wrong."""
    for seed, n_classes, n_train in ((1, 4, 1500), (2, 10, 3000), (3, 2, 800)):
        x, y = make_classification(
            n_train + 11_000,
            n_features=20,
            n_informative=8,
            n_redundant=4,
            n_classes=n_classes,
            flip_y=0.05,
            class_sep=1.2,
            random_state=seed,
        )
        models = {
            "logistic": LogisticRegression(),
            "boosting": HistGradientBoostingClassifier(max_iter=400 // n_classes),
            "forest": RandomForestClassifier(100, random_state=0),
            "network": mlp(64),
            "discriminant": QuadraticDiscriminantAnalysis(reg_param=0.1),
        }
        yield from trained(f"{n_classes} drawn classes", x, y, n_train, models)


def uneven_classes() -> Iterator[Outputs]:
    """Yield models of 30 normal classes, some wide and some narrow."""
    rng = np.random.default_rng(4)
    centres, widths = rng.normal(size=(30, 12)) * 1.5, rng.uniform(0.5, 2.0, 30)
    y = rng.integers(0, 30, 14_000)
    x = centres[y] + rng.normal(size=(len(y), 12)) * widths[y][:, np.newaxis]
    models = {
        "network": mlp(64),
        "discriminant": LinearDiscriminantAnalysis(),
        "forest": RandomForestClassifier(100, random_state=0),
    }
    yield from trained("30 uneven classes", x, y, 3000, models)


def networks(folder: Path) -> Iterator[Outputs]:
    """Yield the outputs of each ONNX model of a folder on both of its labelled sets."""
    sets = [np.load(folder / f"{name}_float32.npz") for name in ("calibration", "evaluation")]
    inputs, labels = (
        np.concatenate([found[key] for found in sets]) for key in ("inputs", "labels")
    )
    for path in sorted(folder.glob("*.onnx")):
        session = onnxruntime.InferenceSession(path)
        name, kind = session.get_inputs()[0].name, session.get_inputs()[0].type
        if kind != "tensor(float)":
            continue
        batches = range(0, len(inputs), BATCH)
        scores = [session.run(None, {name: inputs[i : i + BATCH]})[0] for i in batches]
        yield Outputs(f"{folder.name}, {path.stem}", np.concatenate(scores), labels, logits=True)


SETS: tuple[Callable[[], Iterator[Outputs]], ...] = (
    digits,
    breast_cancer,
    texts,
    drawn_classes,
    uneven_classes,
)


def judge(outputs: Outputs, size: str, splits: int, k: int) -> Row | None:
    """Fit to ``n`` samples and score all others, for several random splits.

    None if there are too few other samples. For k > 1 also if the number of misses among the ``n``
    is outside of `MISSES`, or if the others have none.
    """
    n_samples, n_classes = outputs.scores.shape
    n = n_samples // 2 if size == HALF else int(size)
    if n_samples - n < LEAST_JUDGED or n_classes <= k:
        return None
    records = outputs.records(k)
    # A curve does not depend on the number of bins.
    options = FitOptions(top_k=(k,), bins=10)
    events: list[EventFit] = []
    lists, certain = [], []
    for repeat in range(splits):
        order = np.random.default_rng((n, repeat)).permutation(records.n_samples)
        calibration, rest = records.take(order[:n]), records.take(order[n:])
        misses = np.count_nonzero(~calibration.hits(k))
        if k > 1 and (not MISSES[0] <= misses <= MISSES[1] or rest.hits(k).all()):
            continue
        event = fit_calibration(
            calibration, options=options, evaluation=rest, n_classes=n_classes
        ).events[k]
        served = with_learned(rest, {k: event.learned.model}).uncertainty[
            event.measures[event.served].column
        ]
        p = event.measures[event.served].table.look_up(served).probability
        sure, hits = p >= CERTAIN, rest.hits(k)
        certain.append(
            [sure.sum(), (1 - p[sure]).sum(), (p * (1 - p))[sure].sum(), (~hits[sure]).sum()]
        )
        events.append(event)
        if k == 1:
            lists.append(list_losses(outputs, order, n, event))
    if not events:
        return None

    def mean(score: str, of: Callable[[EventFit], Any]) -> float:
        return float(np.mean([of(event).evaluation[score] for event in events]))

    rivals = {
        name: [mean(score, lambda event, name=name: event.baselines[name]) for score in LOSSES]
        for name in RIVALS
    }
    served = [mean(score, lambda event: event.measures[event.served]) for score in LOSSES]
    auroc = {
        name: mean("auroc", lambda event, name=name: event.measures[name])
        for name in options.measures
    }
    nll, brier = served / np.min(list(rivals.values()), axis=0)
    return Row(
        outputs.name,
        size,
        min(rivals, key=lambda name: rivals[name][0]),
        "/".join(dict.fromkeys(event.served for event in events)),
        nll,
        brier,
        served[0] / rivals["temperature"][0],
        auroc.pop(LEARNED) - max(auroc.values()),
        float(np.divide(*np.mean(lists, axis=0))) if lists else np.nan,
        np.sum(certain, axis=0),
    )


def list_losses(outputs: Outputs, order: np.ndarray, n: int, event: EventFit) -> list[float]:
    """Return the NLL of the served list of classes, and that of the best rival's."""
    fit, rest = order[:n], order[n:]
    labels, wide = outputs.labels, outputs.scores.astype(np.float64)
    p = np.maximum(softmax(wide, axis=1), 1e-37)
    records = outputs.records().take(rest)
    odds, first = recorded_odds(event.learned.model, records), records.top_classes[:, 0]
    served = event.measures["learned"].table.look_up(odds.uncertainty(1)).probability
    is_hit, is_label = first == labels[rest], records.top_classes == labels[rest, np.newaxis]
    # Beyond the recorded classes a label has its share of the rest, in proportion to p^(1 / T).
    shares, t = odds.shares(), 1 / event.learned.model.temperature
    beyond = np.exp(odds.rest - odds.beyond(1)).sum(axis=1) * p[rest, labels[rest]] ** t
    others = p[rest] ** t
    np.put_along_axis(others, records.top_classes.astype(np.int64), 0.0, axis=1)
    beyond /= np.maximum(others.sum(axis=1), 1e-37)
    share = np.where(is_label.any(axis=1), (shares * is_label).sum(axis=1), beyond)
    ours = -np.log(np.where(is_hit, served, (1 - served) * np.maximum(share, 1e-37))).mean()
    lists = [p[rest]]
    if get_calibrator is not None:
        for name in ("temp-scaling", "svs", "sms")[: 3 if p.shape[1] <= MOST_MATRIX else 2]:
            rival = get_calibrator(name)
            rival.fit(p[fit], labels[fit])
            lists.append(np.maximum(rival.predict_proba(p[rest]), 1e-37))
    each = np.arange(len(rest))
    return [float(ours), min(float(-np.log(one[each, labels[rest]]).mean()) for one in lists)]


LOSSES = ("nll", "brier")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="*")
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--splits", type=int, nargs="+", default=SPLITS)
    parser.add_argument("--k", type=int, default=1)
    options = parser.parse_args()
    sources = [*SETS, *(lambda folder=folder: networks(folder) for folder in options.folder)]
    rows: list[Row] = []
    print("| model | n | served | best rival | NLL | Brier | to temperature | AUROC gain | list |")
    print("|---|---:|---|---|---:|---:|---:|---:|---:|")
    for source in sources:
        for outputs in source():
            for size, splits in zip(options.sizes, options.splits, strict=True):
                row = judge(outputs, size, splits, options.k)
                if row is None:
                    continue
                rows.append(row)
                print(
                    f"| {row.name} | {row.n} | {row.served} | {row.rival} | {row.nll:.3f} "
                    f"| {row.brier:.3f} | {row.to_temperature:.3f} | {row.gain:+.3f} "
                    f"| {row.listed:.3f} |",
                    flush=True,
                )
    print("\n| n | models | NLL | Brier | to temperature | AUROC gain | list |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for size in options.sizes:
        of_size = [row for row in rows if row.n == size]
        cells = [
            f"{np.mean(values):.3f} ({worst(values):.3f})"
            for name, worst in (
                *(dict.fromkeys(RATIOS, np.max)).items(),
                ("gain", np.min),
                ("listed", np.max),
            )
            for values in [[getattr(row, name) for row in of_size]]
        ]
        print(f"| {size} | {len(of_size)} | {' | '.join(cells)} |")
    print("\n| n | answers with p >= .98 | errors expected | errors | standard errors between |")
    print("|---:|---:|---:|---:|---:|")
    for size in options.sizes:
        answers, expected, variance, errors = np.sum(
            [row.certain for row in rows if row.n == size], axis=0
        )
        print(
            f"| {size} | {answers:,.0f} | {expected:.1f} | {errors:.0f} "
            f"| {(errors - expected) / np.sqrt(variance):+.1f} |"
        )


RATIOS = ("nll", "brier", "to_temperature")

if __name__ == "__main__":
    main()
