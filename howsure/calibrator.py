"""A calibrator in a program or notebook: from a model's outputs to probabilities of being right.

It fits and answers as the service does when it is sent outputs instead of a model.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from howsure.outputs import (
    OutputKind,
    are_distributions,
    are_percentages,
    broken_rule,
    log_scores,
)
from howsure.report.fit_report import FittedSets, fit_report
from howsure.report.report import Report
from howsure.report.words.fit_notes import certain_event_notes
from howsure.statistics.arrays import Classes, Hits, Rates, Uncertainty
from howsure.statistics.bins.lookup import BinLookup
from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import Fit
from howsure.statistics.label_model.class_list import class_probability_array, class_shares
from howsure.statistics.label_model.model import LabelOdds
from howsure.statistics.measures import LEARNED
from howsure.statistics.records.build import build_records, ranked_outputs, row_blocks
from howsure.statistics.records.order import moved_to_canonical_order, tie_keys
from howsure.statistics.records.records import Records
from howsure.statistics.softmax import BINARY

DEFAULT_TOP_K = (1, 5)
MATRIX = 2  # dimensions


class NotFittedError(ValueError, AttributeError):
    """A calibrator was asked before it was fitted; named and typed as scikit-learn's."""


@dataclass(frozen=True, eq=False)
class EventAnswers(BinLookup):
    """Whether the label is among the ``k`` top classes, a number for each sample.

    Attributes
    ----------
    bin : ndarray of int64, shape (n_samples,)
    probability, lower, upper : ndarray of float64, shape (n_samples,)
        The calibrated probability, and its interval.
    uncertainty : ndarray of float32, shape (n_samples,)
        By the measure that serves the event.
    """

    uncertainty: Uncertainty


@dataclass(frozen=True, eq=False)
class Answers:
    """Predicted classes and the probability that they are right.

    Attributes
    ----------
    classes : ndarray of int, shape (n_samples, n_listed)
        The most probable classes by the model's own scores, best first.
    class_probability : ndarray of float64, shape (n_samples, n_listed), optional
        The calibrated probability of each of them; the first is that of Top-1. None unless Top-1
        was calibrated.
    top : dict of int to EventAnswers
        By ``k``.
    out_of_distribution : ndarray of bool, shape (n_samples,), optional
        Whether the Top-1 uncertainty is beyond that of nearly all calibration samples.
    accept : dict of float to ndarray of bool, shape (n_samples,)
        By error rate: whether an answer may be accepted. None may, where no threshold is proven.
    """

    classes: Classes
    class_probability: Rates | None
    top: Mapping[int, EventAnswers]
    out_of_distribution: Hits | None
    accept: Mapping[float, Hits]

    @property
    def probability(self) -> Rates:
        """The probability that the first class is right, float64 of shape (n_samples,)."""
        return self.top[1].probability

    @property
    def interval(self) -> Rates:
        """Lower and upper end for `probability`, float64 of shape (n_samples, 2)."""
        return np.stack([self.top[1].lower, self.top[1].upper], axis=1)


class Calibrator:
    """Fits the probability that a classifier's answer is right to its outputs and labels.

    Parameters
    ----------
    kind : {"logits", "probabilities"}
        What the outputs are.
    top_k : tuple of int, optional
        Events; by default 1 and 5, as far as there are more classes.
    decision_threshold : float, optional
        For models of two classes: class 1 is predicted where the model's probability of it is at
        least this.
    **options
        Those of `FitOptions`, such as ``measures``, ``lookup`` or ``selective``.

    Attributes
    ----------
    notes : list of str
        What a reader of these probabilities should know, a sentence or two each; empty before
        `fit`.

    Raises
    ------
    ValueError
        If an option breaks its rule.

    Examples
    --------
    >>> import numpy as np
    >>> from howsure import Calibrator
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(0.0, 4.0, (600, 3))
    >>> wrong = rng.random(600) < 0.2
    >>> labels = np.where(wrong, rng.integers(0, 3, 600), logits.argmax(axis=1))
    >>> calibrator = Calibrator(kind="logits").fit(logits[:500], labels[:500])
    >>> answers = calibrator.predict(logits[500:])
    >>> answers.classes.shape, answers.probability.shape, answers.interval.shape
    ((100, 3), (100,), (100, 2))
    """

    def __init__(
        self,
        *,
        kind: OutputKind,
        top_k: tuple[int, ...] | None = None,
        decision_threshold: float | None = None,
        **options: Any,  # noqa: ANN401 - `FitOptions` checks them
    ) -> None:
        if kind not in ("logits", "probabilities"):
            raise ValueError(f'kind must be "logits" or "probabilities", not {kind!r}')
        self.kind: OutputKind = kind
        self.decision_threshold = decision_threshold
        self._top_k = top_k
        self._options = FitOptions(top_k=top_k or DEFAULT_TOP_K, **options)
        self._n_classes = 0
        self._fit: Fit | None = None
        self._report: Report | None = None
        self.notes: list[str] = []

    def fit(
        self,
        outputs: ArrayLike,
        labels: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        evaluation: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Self:
        """Fit to outputs and labels of samples that the model was not trained on.

        Parameters
        ----------
        outputs : array_like of float, shape (n_samples, n_classes)
        labels : array_like of int, shape (n_samples,)
        weight : array_like of float, shape (n_samples,), optional
            How much each sample counts; only ratios matter.
        group : array_like, shape (n_samples,), optional
            Numbers or names; samples with equal ones belong together.
        evaluation : pair of array_like, optional
            Outputs and labels of other samples, on which the fit is judged.

        Raises
        ------
        ValueError
            If an array or option breaks its rule; the message names it.
        """
        values = self._checked(outputs)
        n_classes = values.shape[1]
        options, notes = self._options, []
        if self._top_k is None:
            notes = certain_event_notes(DEFAULT_TOP_K, n_classes)
            top_k = tuple(k for k in DEFAULT_TOP_K if k < n_classes)
            served = {k: measure for k, measure in options.serve.items() if k in top_k}
            options = replace(options, top_k=top_k, serve=served)
        if self.decision_threshold is not None and n_classes != BINARY:
            raise ValueError(f"decision_threshold is for two classes, not {n_classes}")
        design: dict[str, NDArray[np.generic]] = {}
        if weight is not None:
            design["weight"] = np.array(weight, np.float64)
        if group is not None:
            design["group"] = np.unique(np.asarray(group), return_inverse=True)[1]
        records = self._records(values, labels, options).with_design(design)
        others = None
        if evaluation is not None:
            others = self._records(self._checked(evaluation[0], n_classes), evaluation[1], options)
        with moved_to_canonical_order(records):  # which the fit has its learned columns in
            fit = fit_calibration(records, options=options, evaluation=others, n_classes=n_classes)
            records.uncertainty.update(fit.learned_columns)
        self._fit, self._options, self._n_classes = fit, options, n_classes
        sets = FittedSets(records, others, self.kind, n_classes)
        self._report = fit_report(fit, sets, options, notes=notes)
        self.notes = self._report.warnings
        return self

    def report(self) -> Report:
        """Return all results of the fit: scores, bins, curves, findings and a summary.

        It is that of ``GET /report``. Classes are called by their indices.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        _ = self.fitted
        return cast("Report", self._report)

    def predict(self, outputs: ArrayLike) -> Answers:
        """Return classes and calibrated probabilities; those of a row depend on no other row.

        Parameters
        ----------
        outputs : array_like of float, shape (n_samples, n_classes)
            Logits or probabilities, as they were fitted.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If outputs break a rule; the message names the row.
        """
        fit = self.fitted
        values = self._checked(outputs, self._n_classes)
        learned = next(iter(fit.events.values())).learned
        inputs = () if learned is None else learned.model.columns
        classes, probabilities, measured = self._ranked(values, inputs)
        odds = None
        if learned is not None and any(one.served == LEARNED for one in fit.events.values()):
            rests = [measured[name] for name in inputs]
            log_rest = np.stack(rests, axis=1) if rests else np.empty((len(values), 0))
            odds = learned.model.odds(classes, probabilities, log_rest)
        top = {k: _event_answers(fit, k, measured, odds) for k in fit.events}
        if 1 not in top:
            return Answers(classes, None, top, None, {})
        shares = class_shares(probabilities, odds, self._n_classes)
        uncertainty = top[1].uncertainty
        beyond = fit.events[1].measures[fit.events[1].served].ood_thresholds
        return Answers(
            classes[:, : shares.shape[1]],
            class_probability_array(top[1].probability, shares),
            top,
            uncertainty > np.float32(beyond[self._options.ood_level]),
            {
                risk: uncertainty <= np.float32(-np.inf if limit is None else limit)
                for risk, limit in self._thresholds().items()
            },
        )

    @property
    def fitted(self) -> Fit:
        """What was fitted: tables, scores and verdicts of every event and measure.

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        if self._fit is None:
            raise NotFittedError("This calibrator is not fitted: call fit(outputs, labels) first.")
        return self._fit

    def threshold(self, max_risk: float) -> float | None:
        """Return the largest Top-1 uncertainty to accept for this error rate.

        It is None if the calibration set is too small, or has too many errors, to prove one.
        ``fitted`` holds the numbers of accepted answers and of errors among them.

        Raises
        ------
        ValueError
            If the fit was not asked for this error rate: see ``selective`` of `FitOptions`.
        """
        proven = self._thresholds()
        if max_risk not in proven:
            risks = ", ".join(map(str, proven)) or "none"
            raise ValueError(f"max_risk must be one of those fitted ({risks}), not {max_risk}")
        return proven[max_risk]

    def _checked(self, outputs: ArrayLike, n_classes: int | None = None) -> NDArray[np.floating]:
        """Return outputs as an array.

        Raises
        ------
        ValueError
            If they break a rule of their kind.
        """
        values = np.asarray(outputs)
        if values.dtype.kind != "f":
            values = values.astype(np.float64)
        is_wide = values.ndim == MATRIX and values.shape[1] >= BINARY
        if not is_wide or n_classes not in (None, values.shape[1]):
            raise ValueError(
                f"{self.kind} must have shape (n_samples, {n_classes or 'n_classes'}), not "
                f"{values.shape}"
            )
        broken = broken_rule(values, self.kind)
        if broken is not None:
            column = "" if broken.column is None else f"[{broken.column}]"
            raise ValueError(f"{self.kind}[{broken.row}]{column}: {broken.rule}")
        if self.kind == "logits" and (are_distributions(values) or are_percentages(values)):
            raise ValueError(
                "logits: these are numbers that sum to 1, or 100, in each row; for probabilities "
                'make Calibrator(kind="probabilities"), and divide percentages by 100'
            )
        return values

    def _records(
        self, values: NDArray[np.floating], labels: ArrayLike, options: FitOptions
    ) -> Records:
        return build_records(
            log_scores(values, self.kind),
            labels,
            tie_keys=tie_keys(values, options.seed),
            top_k=options.top_k,
            logits=self.kind == "logits",
            threshold=self.decision_threshold,
        )

    def _ranked(
        self, values: NDArray[np.floating], inputs: Iterable[str]
    ) -> tuple[Classes, NDArray[np.float32], dict[str, Uncertainty]]:
        """Return classes, their probabilities and uncertainties, a block of rows at a time."""
        blocks = [
            ranked_outputs(
                log_scores(values[rows], self.kind),
                top_k=self._options.top_k,
                inputs=inputs,
                logits=self.kind == "logits",
                threshold=self.decision_threshold,
            )
            for rows in row_blocks(values)
        ]
        classes, probabilities, measured = zip(*blocks, strict=True)
        return (
            np.concatenate(classes),
            np.concatenate(probabilities).astype(np.float32),
            {name: np.concatenate([one[name] for one in measured]) for name in measured[0]},
        )

    def _thresholds(self) -> dict[float, float | None]:
        event = self.fitted.events.get(1)
        results = [] if event is None else event.measures[event.served].selective
        return {one.target.max_risk: one.threshold for one in results}


def _event_answers(
    fit: Fit, k: int, measured: Mapping[str, Uncertainty], odds: LabelOdds | None
) -> EventAnswers:
    measure = fit.events[k].measures[fit.events[k].served]
    uncertainty = measured.get(measure.column)
    if uncertainty is None:  # it is computed from others
        uncertainty = cast("LabelOdds", odds).uncertainty(k)
    return EventAnswers(**vars(measure.table.look_up(uncertainty)), uncertainty=uncertainty)
