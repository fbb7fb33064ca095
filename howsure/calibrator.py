"""A calibrator in a program or notebook: from a model's outputs to probabilities of being right.

It follows the conventions of scikit-learn, and fits and answers as the service does when it is sent
outputs instead of a model.
"""

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from howsure.bins_document.conversion import fitted_interval
from howsure.bins_document.document import BinsDocument, Data
from howsure.bins_document.fitted import check_bounds, fitted_document
from howsure.bins_document.read import read_document
from howsure.estimator import Estimator, NotFittedError
from howsure.labelled_outputs import (
    KINDS,
    SCORES,
    AnyKind,
    as_outputs,
    class_labels,
    labelled_records,
    sha256_of,
)
from howsure.predictor import Answers, Predictor, is_of_outputs
from howsure.report.fit_report import FittedSets, fit_report
from howsure.report.report import Report
from howsure.report.words.fit_notes import certain_event_notes
from howsure.report.words.scores import scores_note
from howsure.statistics.arrays import Hits, Rates
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.lookup import Lookup
from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import Fit
from howsure.statistics.measures import DEFAULT_MEASURES, SCORE
from howsure.statistics.records.order import moved_to_canonical_order
from howsure.statistics.records.pairs import CLASS_NAMES, are_probabilities
from howsure.statistics.selective import DEFAULT_TARGETS, SelectiveTarget
from howsure.statistics.softmax import BINARY

if TYPE_CHECKING:
    from howsure.client import Calibration

__all__ = ["Calibrator", "NotFittedError"]

DEFAULT_TOP_K = (1, 5)


class Calibrator(Estimator):
    """Fits the probability that a classifier's answer is right to its outputs and labels.

    Parameters
    ----------
    kind : {"logits", "probabilities", "scores"}
        What the outputs are; scores are one number a sample, larger where an answer is likelier
        right, with labels that say whether it was.
    classes : sequence, optional
        The class of each column, as labels have it, such as ``classes_`` of a classifier; by
        default labels are columns, counted from 0.
    top_k : tuple of int, optional
        Events; by default 1 and 5, as far as there are more classes.
    decision_threshold : float, optional
        For models of two classes: class 1 is predicted where the model's probability of it is at
        least this.
    measures, serve, bins, lookup, prior_strength, interval, monotone, folds, targets, selective, \
ood_level, seed
        As `FitOptions` has them.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The classes, in the order of `predict_proba`.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str, shape (n_classes,)
        Their names, if a frame was fitted.
    document_ : BinsDocument
        All tables and thresholds, as `save` writes them.

    Examples
    --------
    >>> import numpy as np
    >>> from howsure import Calibrator
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(0.0, 4.0, (600, 3))
    >>> wrong = rng.random(600) < 0.2
    >>> labels = np.where(wrong, rng.integers(0, 3, 600), logits.argmax(axis=1))
    >>> calibrator = Calibrator(kind="logits").fit(logits[:500], labels[:500])
    >>> calibrator.predict_proba(logits[500:]).shape
    (100, 3)
    >>> calibrator.predict_interval(logits[500:]).shape
    (100, 2)
    """

    def __init__(  # noqa: PLR0913 - the options of a fit
        self,
        kind: AnyKind = "logits",
        *,
        classes: Sequence[Hashable] | None = None,
        top_k: tuple[int, ...] | None = None,
        decision_threshold: float | None = None,
        measures: tuple[str, ...] = DEFAULT_MEASURES,
        serve: Mapping[int, str] | None = None,
        bins: int | Literal["auto"] = "auto",
        lookup: Lookup = "smooth",
        prior_strength: float = 1.0,
        interval: IntervalOptions | None = None,
        monotone: bool = False,
        folds: int = 10,
        targets: tuple[float, ...] = (0.99, 0.95),
        selective: tuple[SelectiveTarget, ...] = DEFAULT_TARGETS,
        ood_level: float = 0.99,
        seed: int = 0,
    ) -> None:
        self.kind = kind
        self.classes = classes
        self.top_k = top_k
        self.decision_threshold = decision_threshold
        self.measures = measures
        self.serve = serve
        self.bins = bins
        self.lookup = lookup
        self.prior_strength = prior_strength
        self.interval = interval
        self.monotone = monotone
        self.folds = folds
        self.targets = targets
        self.selective = selective
        self.ood_level = ood_level
        self.seed = seed

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        evaluation: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Self:
        """Fit to outputs and labels of samples that the model was not trained on.

        Parameters
        ----------
        X : array_like of float, shape (n_samples, n_classes); of scores (n_samples,)
            Outputs of the model.
        y : array_like, shape (n_samples,)
            Labels.
        sample_weight : array_like of float, shape (n_samples,), optional
            How much each sample counts; only ratios matter.
        groups : array_like, shape (n_samples,), optional
            Numbers or names; samples with equal ones belong together.
        evaluation : pair of array_like, optional
            Outputs and labels of other samples, on which the fit is judged.

        Raises
        ------
        ValueError
            If an array or option breaks its rule; the message names it.
        """
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {self.kind!r}")
        values = as_outputs(X, self.kind)
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None")
        is_scores = self.kind == SCORES
        n_classes = BINARY if is_scores else values.shape[1]
        labels = class_labels(self.classes, n_classes)
        options, notes = self._fit_options(n_classes)
        kind, classes = self.kind, self.classes
        records_of = partial(labelled_records, options, kind, classes, self.decision_threshold)
        design: dict[str, NDArray[np.generic]] = {}
        if sample_weight is not None:
            design["weight"] = np.array(sample_weight, np.float64)
        if groups is not None:
            design["group"] = np.unique(np.asarray(groups), return_inverse=True)[1]
        records = records_of(values, y).with_design(design)
        others = None
        if evaluation is not None:
            further = as_outputs(evaluation[0], self.kind, values.shape[1])
            others = records_of(further, evaluation[1])
        with moved_to_canonical_order(records):  # which the fit has its learned columns in
            fit = fit_calibration(records, options=options, evaluation=others, n_classes=n_classes)
            records.uncertainty.update(fit.learned_columns)
        ends = float(values.min()), float(values.max())
        if is_scores:
            notes = [scores_note(*ends, probabilities=are_probabilities(np.asarray(ends)))]
        names = CLASS_NAMES if is_scores else tuple(map(str, labels))
        document = fitted_document(
            fit,
            options,
            data=Data(
                samples=records.n_samples,
                kind="pairs" if self.kind == SCORES else self.kind,
                score_range=ends if is_scores else None,
            ),
            data_sha256=sha256_of(values, records.label, *design.values()),
            classes=names,
            decision_threshold=self.decision_threshold,
        )
        sets = FittedSets(records, others, document.data.kind, names)
        self._report = fit_report(fit, sets, options, notes=notes)
        self._fit = fit
        self._take(document, Predictor.of(document))
        self._remember_names(X)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:
        """Return the predicted classes, shape (n_samples,).

        Of scores, whether the answers are right with a probability of at least a half.
        """
        answers = self.answer(X)
        if self.kind == SCORES:
            return np.asarray(answers.probability >= 1 / BINARY)
        return np.asarray(self.classes_[answers.classes[:, 0]])

    def predict_proba(self, X: ArrayLike) -> Rates:
        """Return the calibrated probability of each class, shape (n_samples, n_classes).

        Of scores, that the answer is wrong and that it is right. The columns are ``classes_``.

        Raises
        ------
        ValueError
            If Top-1 was not calibrated.
        """
        values = self._checked(X)
        return self._predictor.distribution(values)

    def predict_interval(self, X: ArrayLike) -> Rates:
        """Return the interval of the probability that the predicted class is right: (n_samples, 2).

        Raises
        ------
        ValueError
            If Top-1 was not calibrated.
        """
        answers = self.answer(X)
        if 1 not in answers.top:
            raise ValueError("Top-1 was not calibrated: see `answer` for other events")
        return answers.interval

    def abstain(self, X: ArrayLike, *, max_risk: float) -> Hits:
        """Return which answers to hand over, so that at most ``max_risk`` of the others are wrong.

        The promise holds with the confidence of its target in ``selective``, 95 % by default, for
        data like those that were fitted. Where they prove no threshold, all are handed over.

        Raises
        ------
        ValueError
            If the fit was not asked for this error rate: see ``selective``.
        """
        self.threshold(max_risk)
        return ~self.answer(X).accept[max_risk]

    def answer(self, X: ArrayLike) -> Answers:
        """Return all answers: classes, probabilities, intervals and flags of each event.

        Those of a row depend on no other row.

        Parameters
        ----------
        X : array_like of float, shape (n_samples, n_classes)
            Outputs of the kind that was fitted.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If outputs break a rule; the message names the row.
        """
        values = self._checked(X)
        return self._predictor.answers(values)

    def threshold(self, max_risk: float) -> float | None:
        """Return the largest Top-1 uncertainty to accept for this error rate.

        It is None if the calibration set is too small, or has too many errors, to prove one.
        ``document_`` holds the numbers of accepted answers and of errors among them.

        Raises
        ------
        ValueError
            If the fit was not asked for this error rate: see ``selective``.
        """
        self._require("document_")
        proven = self._predictor.accept_thresholds
        if max_risk not in proven:
            risks = ", ".join(map(str, proven)) or "none"
            raise ValueError(f"max_risk must be one of those fitted ({risks}), not {max_risk}")
        return proven[max_risk]

    def report(self) -> Report:
        """Return all results of the fit: scores, bins, curves, findings and a summary.

        It is that of ``GET /report``, but for names of classes.

        Raises
        ------
        NotFittedError
            Before `fit`, and of a loaded calibrator, since a bins document has no scores.
        """
        self._require("_report")
        return self._report

    @property
    def fitted(self) -> Fit:
        """What was fitted: tables, scores and verdicts of every event and measure.

        Raises
        ------
        NotFittedError
            Before `fit`, and of a loaded calibrator.
        """
        self._require("_fit")
        return self._fit

    @property
    def notes(self) -> list[str]:
        """What a reader of these probabilities should know, a sentence or two each."""
        return self.report().warnings

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the bins document, which `load` and the service read; return its path.

        Raises
        ------
        ValueError
            If the document breaks a rule, such as the length of a class name; the message names
            the part. Nothing is written.
        """
        content = msgspec.json.format(self._json(), indent=1)
        written = Path(path)
        written.write_bytes(content)
        return written

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return a calibrator from a bins document, also one of a service's calibration.

        It answers equally; it has neither a report nor samples.

        Raises
        ------
        ValueError
            If the file is no bins document, breaks a rule of it, or is served by a measure that
            outputs alone do not give.
        """
        document = read_document(Path(path).read_bytes())
        predictor = Predictor.of(document)
        served = [table for table in document.tables if table.served]
        calibrator = cls(
            predictor.kind,
            top_k=predictor.top_k,
            decision_threshold=document.decision_threshold,
            measures=tuple(dict.fromkeys(table.measure for table in document.tables)),
            serve={table.event: table.measure for table in served},
            lookup=served[0].lookup,
            prior_strength=served[0].prior.strength,
            interval=fitted_interval(served[0]),
            monotone=served[0].monotone,
            selective=tuple(SelectiveTarget(one.max_risk, one.delta) for one in document.selective),
            ood_level=document.out_of_distribution.level,
        )
        if document.classes != list(map(str, range(len(document.classes)))):
            calibrator.classes = None if calibrator.kind == SCORES else tuple(document.classes)
        calibrator._take(document, predictor)
        return calibrator

    def to_onnx(self, *, opset: int = 17) -> Any:  # noqa: ANN401 - onnx is optional
        """Return the calibration alone as an ONNX model, from outputs to what `answer` returns.

        Append it to your model, or run it behind it.

        Raises
        ------
        ImportError
            Without the package onnx, which the extra ``onnx`` installs.
        """
        self._require("document_")
        try:
            from howsure.onnx_head.calibration_graph import calibration_graph  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ImportError(
                f"to_onnx needs the package {error.name}: install howsure with its extra onnx"
            ) from error
        return calibration_graph(self.document_, self._predictor, opset=opset)

    def push(
        self, url: str | None = None, *, name: str | None = None, api_key: str | None = None
    ) -> "Calibration":
        """Make a calibration of a service from this one, which answers equally.

        Parameters
        ----------
        url, api_key
            As in `howsure.Client`.
        name
            Its name on the service; by default that of the document, ``calibrator``.

        Raises
        ------
        ValueError
            If the document breaks a rule, as in `save`.
        """
        content = self._json()
        from howsure.client import Client  # noqa: PLC0415 - a fit needs no client

        with Client(url, api_key=api_key) as client:
            return client.import_bins(content, name=name)

    def _json(self) -> bytes:
        """Return the document as JSON, after reading it back: each of its rules is checked."""
        self._require("document_")
        content = msgspec.json.encode(self.document_)
        read_document(content)
        return content

    def _checked(self, outputs: ArrayLike) -> NDArray[np.floating]:
        self._require("document_")
        self._check_names(outputs)
        return as_outputs(outputs, self.kind, self.n_features_in_)

    def _take(self, document: BinsDocument, predictor: Predictor) -> None:
        """Take over the tables that answers come from."""
        self.document_ = document
        self._predictor = predictor
        n_classes = len(document.classes)
        is_scores = self.kind == SCORES
        self.n_features_in_ = 1 if is_scores else n_classes
        labels = [False, True] if is_scores else class_labels(self.classes, n_classes)
        self.classes_ = np.array(labels)

    def _fit_options(self, n_classes: int) -> tuple[FitOptions, list[str]]:
        """Return the options, and notes on events that are certain.

        Raises
        ------
        ValueError
            If one breaks its rule.
        """
        others = [name for name in self.measures if not is_of_outputs(name)]
        if others and self.kind != SCORES:
            raise ValueError(f"measures must be computable from outputs alone, not {others[0]}")
        names = ("bins", "lookup", "prior_strength", "monotone", "folds", "ood_level", "seed")
        options = FitOptions(
            top_k=self.top_k or DEFAULT_TOP_K,
            measures=tuple(self.measures),
            serve=self.serve or {},
            interval=self.interval or IntervalOptions(),
            targets=tuple(self.targets),
            selective=tuple(self.selective),
            **{name: getattr(self, name) for name in names},
        )
        check_bounds(options)
        if self.decision_threshold is not None and (n_classes != BINARY or self.kind == SCORES):
            raise ValueError(f"decision_threshold is for two classes, not {n_classes}")
        if self.kind == SCORES:
            return replace(options, top_k=(1,), measures=(SCORE,), serve={1: SCORE}), []
        if self.top_k is not None:
            return options, []
        top_k = tuple(k for k in DEFAULT_TOP_K if k < n_classes)
        served = {k: measure for k, measure in options.serve.items() if k in top_k}
        notes = certain_event_notes(DEFAULT_TOP_K, n_classes)
        return replace(options, top_k=top_k, serve=served), notes
