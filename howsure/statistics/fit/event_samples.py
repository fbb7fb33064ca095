"""The samples of one set for one event."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from howsure.statistics.arrays import BinIndex, Floats, Hits, Uncertainty, mean_of
from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.bins.edges import UNDERFLOW
from howsure.statistics.effective import effective_weights
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.outcome import BinaryOutcome
from howsure.statistics.measures import column
from howsure.statistics.records.records import Records
from howsure.statistics.softmax import BINARY

if TYPE_CHECKING:
    from howsure.statistics.label_model.fit import LabelFit

Rows: TypeAlias = BinIndex | slice
ALL = slice(None)


@dataclass(frozen=True, eq=False)
class EventSamples:
    """The samples of one set, with the probability mass of the top classes on several scales.

    Attributes
    ----------
    records : Records
    k : int
        The event: the label is among the ``k`` top classes.
    """

    records: Records
    k: int

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.records.n_samples

    @cached_property
    def hits(self) -> Hits:
        """Whether the event holds, shape (n_samples,)."""
        return self.records.hits(self.k)

    @property
    def design(self) -> SampleDesign:
        """Weights and groups of the samples."""
        return self.records.design

    @cached_property
    def weights(self) -> Floats:
        """Sampling weights, shape (n_samples,)."""
        return self.records.weights

    @cached_property
    def counts(self) -> Floats:
        """How many samples each one counts for in a fit: together the effective samples."""
        return effective_weights(self.hits, self.design)

    def share_of_hits(self, rows: Rows = slice(None)) -> float:
        """Return the weighted share of hits at ``rows``."""
        return mean_of(self.hits[rows], self.weights[rows])

    @property
    def mass_uncertainty(self) -> Uncertainty:
        """``U_k = -log s``, where ``s`` is the mass of the ``k`` top classes."""
        return self.records.uncertainty[column("neg_log_topk_mass", self.k)]

    @cached_property
    def neg_log_mass(self) -> Floats:
        """``U_k`` as float64.

        Values below float32's normal range are equal, as in the edges of bins, so their logarithms
        are finite.
        """
        return np.maximum(self.mass_uncertainty.astype(np.float64), float(UNDERFLOW))

    @cached_property
    def log_rest(self) -> Floats:
        """``log(1 - s)``, precise for ``s`` next to 1."""
        return np.log(-np.expm1(-self.neg_log_mass))

    @cached_property
    def log_odds(self) -> Floats:
        """``log(s / (1 - s)) = -log(expm1(U_k))``, from about -85 to 85."""
        return -np.log(np.expm1(self.neg_log_mass))

    @cached_property
    def outcome(self) -> BinaryOutcome:
        """The outcome that calibrators of one probability are fitted on.

        With two classes it is class 1: a model may be too sure of one class and not sure enough of
        the other, as after training on fewer samples of one. The confidence ``max(p, 1 - p)``
        merges both errors into one. Otherwise it is the event.
        """
        event = BinaryOutcome(
            name="event",
            holds=self.hits,
            log_probability=-self.neg_log_mass,
            log_rest=self.log_rest,
            log_odds=self.log_odds,
            is_event=np.ones(self.n_samples, dtype=np.bool_),
        )
        top = self.records.top_classes
        # Five classes or more are recorded, unless there are fewer; pairs record one.
        return event.as_class_1(top[:, 0]) if top.shape[1] == BINARY else event


@dataclass(frozen=True, eq=False)
class EventInput:
    """The input of the fit of one event.

    Attributes
    ----------
    samples : EventSamples
        The calibration set.
    evaluation : EventSamples, optional
        Samples for evaluation, not used in the fit.
    folds : ndarray of int64, shape (n_samples,)
        The fold of each sample in cross-validation.
    options : FitOptions
    learned : LabelFit, optional
        Its column is then among the records.
    """

    samples: EventSamples
    evaluation: EventSamples | None
    folds: BinIndex
    options: FitOptions
    learned: "LabelFit | None" = None
