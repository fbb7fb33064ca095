"""Lookup of classes and calibrated probabilities for the rows of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from howsure.events import HeadOutputs
from howsure.statistics.arrays import BinIndex, Classes
from howsure.statistics.bins.lookup import BinLookup
from howsure.statistics.label_model.class_list import class_shares
from service.metrics.answers import AnswerCounts
from service.predictions.served_calibration import Flags, ServedCalibration, ServedEvent
from service.runner.model_output import SERVED_CLASSES

FlaggedRows: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class EventAnswer:
    """Answers to one event, one per sample."""

    event: ServedEvent
    uncertainty: NDArray[np.float32]
    bins: BinIndex

    @cached_property
    def found(self) -> BinLookup:
        """The bins, probabilities and intervals of the table, in float64."""
        return self.event.table.look_up(self.uncertainty)

    @property
    def probability(self) -> NDArray[np.float64]:
        """The probability of each sample."""
        table = self.event.table
        return table.probability[self.bins] if table.lookup == "step" else self.found.probability

    def float32(self) -> NDArray[np.float32]:
        """Return probability, lower and upper end of the interval, shape (n_samples, 3)."""
        of_bins = self.event.float32
        if of_bins is not None:
            return of_bins[self.bins]
        found = self.found
        return np.stack([found.probability, found.lower, found.upper], 1).astype(np.float32)


@dataclass(frozen=True)
class PredictionBatch:
    """Answers to the rows of a run: classes of shape (n_samples, n_shown), events by ascending k.

    ``shares`` are those of `class_shares`.

    The flags use the measure that serves Top-1. They are None where Top-1 was not calibrated and
    for a risk without a threshold. ``adversarial`` uses ``jacobian_norm``, and is None where it
    serves no event.
    """

    calibration: ServedCalibration
    classes: Classes
    scores: NDArray[np.float32]
    shares: NDArray[np.float64]
    events: list[EventAnswer]
    out_of_distribution: FlaggedRows | None
    abstain: Mapping[str, FlaggedRows]
    adversarial: FlaggedRows | None = None

    def record_metrics(self, counts: AnswerCounts, rows: slice) -> None:
        """Count some of the rows by bin and flag."""
        flagged = self.out_of_distribution
        counts.count(
            self.calibration.ref,
            rows=len(self.classes[rows]),
            bins={
                answer.event.k: (answer.bins[rows].tolist(), answer.event.table.n_bins)
                for answer in self.events
            },
            out_of_distribution=None if flagged is None else int(np.count_nonzero(flagged[rows])),
            abstained={
                risk: int(np.count_nonzero(found[rows])) for risk, found in self.abstain.items()
            },
        )


def class_probabilities(first: float, shares: Sequence[float]) -> list[float]:
    """Return the probabilities of the listed classes, where that of Top-1 is served."""
    left = 1.0 - first
    return [first, *(left * share for share in shares[1:])]


def answers_of(served: ServedCalibration, outputs: HeadOutputs) -> PredictionBatch:
    """Look up a head's outputs in the tables."""
    columns, odds = outputs.uncertainty, served.odds(outputs)
    events = [_answer(event, event.uncertainty(outputs, odds)) for event in served.events]
    uncertainty = np.zeros(len(outputs.top_classes), np.float32)
    if served.top1 is not None:
        uncertainty = events[served.top1].uncertainty
    beyond = _beyond(uncertainty, served.flags)
    flags, unlike = served.flags, _unlike(columns, served)
    shares = class_shares(outputs.top_scores, odds, len(served.class_names))
    return PredictionBatch(
        calibration=served,
        classes=outputs.top_classes[:, :SERVED_CLASSES],
        scores=outputs.top_scores[:, :SERVED_CLASSES],
        shares=shares[:, :SERVED_CLASSES],
        events=events,
        out_of_distribution=None if beyond is None else _or(beyond, unlike),
        abstain={name: _or(uncertainty > limit, unlike) for name, limit in flags.abstain.items()},
        adversarial=_adversarial(events, served),
    )


def _unlike(
    columns: Mapping[str, NDArray[np.float32]], served: ServedCalibration
) -> FlaggedRows | None:
    """Return which rows are on another scale; None if the calibration set's scale is unknown."""
    found: FlaggedRows | None = None
    for least, most, known in served.extents:
        ends = columns[least].astype(np.float64), columns[most].astype(np.float64)
        found = _or(np.asarray(known.is_unlike(*ends)), found)
    for name in served.marks:
        found = _or(columns[name] > 0.0, found)
    return found


def _or(one: FlaggedRows, other: FlaggedRows | None) -> FlaggedRows:
    """Return which rows either of the two flags."""
    return one if other is None else one | other


def _beyond(uncertainty: NDArray[np.float32], flags: Flags) -> FlaggedRows | None:
    """Return which samples have an uncertainty unlike the calibration set's."""
    threshold, least = flags.out_of_distribution, flags.least_uncertainty
    if threshold is None:
        return None
    above = uncertainty > threshold
    return above if least is None else above | (uncertainty < least)


def _adversarial(events: Sequence[EventAnswer], served: ServedCalibration) -> FlaggedRows | None:
    if served.adversarial is None:
        return None
    place, threshold = served.adversarial
    return events[place].uncertainty > threshold


def _answer(event: ServedEvent, uncertainty: NDArray[np.float32]) -> EventAnswer:
    # Uncertainties are finite: the runner and the request reader refuse all others.
    bins = event.table.edges[1:-1].searchsorted(uncertainty)
    return EventAnswer(event, uncertainty, bins)
