"""Answers to the outputs of a model, from the tables of a bins document."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from howsure.bins_document.conversion import fitted_formula, fitted_table
from howsure.bins_document.document import BinsDocument
from howsure.events import HeadOutputs, TabledEvent, label_odds
from howsure.labelled_outputs import SCORES, AnyKind
from howsure.outputs import log_scores
from howsure.statistics.arrays import Classes, Floats, Hits, Rates, Uncertainty
from howsure.statistics.bins.lookup import BinLookup
from howsure.statistics.label_model.class_list import class_probability_array, class_shares
from howsure.statistics.label_model.model import LabelModel
from howsure.statistics.measures import SCORE, column, parse_measure
from howsure.statistics.records.build import ranked_outputs, row_blocks


def is_of_outputs(measure: str) -> bool:
    """Tell whether a model's outputs alone give a measure, without the model or further columns."""
    parsed = parse_measure(measure)
    return not parsed.needs_model and parsed.kind != "supplied"


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
        The most probable classes by the model's own scores, best first; of scores only 0.
    class_probability : ndarray of float64, shape (n_samples, n_listed), optional
        The calibrated probability of each of them; the first is that of Top-1. None unless Top-1
        was calibrated, and of scores.
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


@dataclass(frozen=True, eq=False)
class Predictor:
    """The served tables of a bins document, and its thresholds on the uncertainty of Top-1.

    Attributes
    ----------
    kind : {"logits", "probabilities", "scores"}
    n_classes : int
    top_k : tuple of int
    decision_threshold : float or None
    events : tuple of TabledEvent
        By ascending k.
    ood_threshold : float or None
    accept_thresholds : dict of float to float or None
        By error rate.
    least_uncertainty : float or None
        Of scores, minus the largest score of the calibration set.
    """

    kind: AnyKind
    n_classes: int
    top_k: tuple[int, ...]
    decision_threshold: float | None
    events: tuple[TabledEvent, ...]
    ood_threshold: float | None
    accept_thresholds: Mapping[float, float | None]
    least_uncertainty: float | None

    @classmethod
    def of(cls, document: BinsDocument) -> Self:
        """Return the predictor of a document.

        Raises
        ------
        ValueError
            If an event is served by a measure that outputs alone do not give.
        """
        served = sorted((one for one in document.tables if one.served), key=lambda one: one.event)
        kind: AnyKind = "logits"
        if document.data.kind == "pairs":
            kind = SCORES
        elif document.model is not None:
            kind = document.model.outputs[0].kind
        elif document.data.kind != "inputs":
            kind = document.data.kind
        for table in served:
            if kind != SCORES and not is_of_outputs(table.measure):
                raise ValueError(
                    f"Top-{table.event} is served by {table.measure}, which a model's outputs "
                    "alone do not give: serve another measure"
                )
        ranges = document.data.score_range
        return cls(
            kind=kind,
            n_classes=len(document.classes),
            top_k=tuple(document.top_k),
            decision_threshold=document.decision_threshold,
            events=tuple(
                TabledEvent(
                    one.event,
                    one.measure,
                    column(one.measure, one.event),
                    fitted_table(one),
                    fitted_formula(one),
                )
                for one in served
            ),
            ood_threshold=document.out_of_distribution.threshold,
            accept_thresholds={one.max_risk: one.threshold for one in document.selective}
            if 1 in document.top_k
            else {},
            least_uncertainty=None if ranges is None else -ranges[1],
        )

    @property
    def label_model(self) -> LabelModel | None:
        """The model of the labels, which all events with it share."""
        formulas = (event.learned for event in self.events)
        return next((one for one in formulas if isinstance(one, LabelModel)), None)

    def answers(self, values: NDArray[np.floating]) -> Answers:
        """Return classes and calibrated probabilities; those of a row depend on no other row.

        Parameters
        ----------
        values : ndarray of float, shape (n_samples, n_classes)
            As `howsure.labelled_outputs.as_outputs` returns them.
        """
        outputs = self._head(values)
        odds = label_odds(self.label_model, outputs)
        top = {}
        for event in self.events:
            uncertainty = event.uncertainty(outputs, odds)
            lookup = event.table.look_up(uncertainty)
            top[event.k] = EventAnswers(**vars(lookup), uncertainty=uncertainty)
        classes = outputs.top_classes
        if 1 not in top:
            return Answers(classes, None, top, None, {})
        uncertainty = top[1].uncertainty
        unlike = uncertainty > np.float32(self.ood_threshold)
        if self.least_uncertainty is not None:
            unlike |= uncertainty < np.float32(self.least_uncertainty)
        accept = {
            risk: uncertainty <= np.float32(-np.inf if limit is None else limit)
            for risk, limit in self.accept_thresholds.items()
        }
        if self.kind == SCORES:
            return Answers(classes, None, top, unlike, accept)
        shares = class_shares(outputs.top_scores, odds, self.n_classes)
        listed = class_probability_array(top[1].probability, shares)
        return Answers(classes[:, : shares.shape[1]], listed, top, unlike, accept)

    def distribution(self, values: NDArray[np.floating]) -> Rates:
        """Return the probability of each class, float64 of shape (n_samples, n_classes).

        Classes that are not recorded share what is left, in proportion to ``(p + floor)^(1 / T)``
        of the model of the labels, or to the model's own probabilities ``p``.

        Raises
        ------
        ValueError
            If Top-1 was not calibrated.
        """
        if 1 not in self.top_k:
            raise ValueError(f"Top-1 was not calibrated, but {self.top_k}: there is no class list")
        parts = [self._distribution(values[rows]) for rows in row_blocks(values)]
        return np.concatenate(parts)

    def _distribution(self, values: NDArray[np.floating]) -> Rates:
        answers = self.answers(values)
        if self.kind == SCORES or answers.class_probability is None:
            return np.stack([1.0 - answers.probability, answers.probability], axis=1)
        listed = answers.class_probability
        if listed.shape[1] == self.n_classes:
            whole = np.empty_like(listed)
        else:
            scores = log_scores(values, self.kind)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            model = self.label_model
            if model is not None:
                p = weights / weights.sum(axis=1, keepdims=True)
                weights = (p + model.floor) ** (1.0 / model.temperature)
            np.put_along_axis(weights, answers.classes, 0.0, axis=1)
            total = weights.sum(axis=1, keepdims=True)
            even = 1.0 / (self.n_classes - listed.shape[1])
            shares = np.divide(weights, total, out=np.full_like(weights, even), where=total > 0.0)
            whole = np.maximum(1.0 - listed.sum(axis=1, keepdims=True), 0.0) * shares
        np.put_along_axis(whole, answers.classes, listed, axis=1)
        return whole

    def _head(self, values: NDArray[np.floating]) -> HeadOutputs:
        """Return what a head would compute, a block of rows at a time."""
        if self.kind == SCORES:
            ones = np.ones((len(values), 1), np.float32)
            measured = {column(SCORE, 1): (-values[:, 0]).astype(np.float32)}
            return HeadOutputs(np.zeros((len(values), 1), np.int64), ones, measured)
        inputs = dict.fromkeys(name for event in self.events for name in event.needs)
        blocks = [
            self._ranked(log_scores(values[rows], self.kind), inputs) for rows in row_blocks(values)
        ]
        classes, scores, by_block = zip(*blocks, strict=True)
        return HeadOutputs(
            np.concatenate(classes),
            np.concatenate(scores).astype(np.float32),
            {name: np.concatenate([one[name] for one in by_block]) for name in by_block[0]},
        )

    def _ranked(
        self, scores: Floats, inputs: Iterable[str]
    ) -> tuple[Classes, Floats, dict[str, Uncertainty]]:
        return ranked_outputs(
            scores,
            top_k=self.top_k,
            inputs=inputs,
            logits=self.kind == "logits",
            threshold=self.decision_threshold,
        )
