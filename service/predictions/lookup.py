"""Answer samples with a class and the calibrated probability that it is right."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import BinIndex, Classes
from howsure.statistics.bins.lookup import BinLookup
from service.metrics.answers import AnswerCounts
from service.predictions.served_calibration import ServedCalibration, ServedEvent
from service.runner.model_output import HeadOutputs

SHOWN_CLASSES = 5

FlaggedRows: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class EventAnswer:
    """Answers to one event, one per sample."""

    event: ServedEvent
    uncertainty: NDArray[np.float32]
    bins: BinIndex

    @cached_property
    def found(self) -> BinLookup:
        """What the table says, in full precision."""
        return self.event.table.look_up(self.uncertainty)

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

    The flags are by the measure that serves Top-1: None where Top-1 was not calibrated, and for a
    risk that no threshold could be found for.
    """

    calibration: ServedCalibration
    classes: Classes
    scores: NDArray[np.float32]
    events: list[EventAnswer]
    out_of_distribution: FlaggedRows | None
    abstain: Mapping[str, FlaggedRows | None]

    def record_metrics(self, counts: AnswerCounts, rows: slice) -> None:
        """Count some of the rows by the bins and flags they have."""
        ref, flagged = self.calibration.ref, self.out_of_distribution
        counts.count(
            ref.name,
            ref.version,
            rows=len(self.classes[rows]),
            bins={
                answer.event.k: (answer.bins[rows].tolist(), answer.event.table.n_bins)
                for answer in self.events
            },
            out_of_distribution=None if flagged is None else int(np.count_nonzero(flagged[rows])),
            abstained={
                risk: int(np.count_nonzero(found[rows]))
                for risk, found in self.abstain.items()
                if found is not None
            },
        )


def answers_of(
    served: ServedCalibration,
    outputs: HeadOutputs,
    columns: Mapping[str, NDArray[np.float32]],
) -> PredictionBatch:
    """Return what the tables make of a head's outputs, ``columns`` being all uncertainties."""
    events = [_answer(event, columns[event.column]) for event in served.events]
    uncertainty = None if served.top1 is None else events[served.top1].uncertainty
    flags = served.flags
    return PredictionBatch(
        calibration=served,
        classes=outputs.top_classes[:, :SHOWN_CLASSES],
        scores=outputs.top_scores[:, :SHOWN_CLASSES],
        events=events,
        out_of_distribution=_above(uncertainty, flags.out_of_distribution),
        abstain={name: _above(uncertainty, limit) for name, limit in flags.abstain.items()},
    )


def _above(uncertainty: NDArray[np.float32] | None, threshold: float | None) -> FlaggedRows | None:
    """Return which samples lie beyond a threshold, which itself lies within."""
    if uncertainty is None or threshold is None:
        return None
    return uncertainty > threshold


def _answer(event: ServedEvent, uncertainty: NDArray[np.float32]) -> EventAnswer:
    # Finite numbers only: the runner and the request reader refuse all else.
    bins = event.table.edges[1:-1].searchsorted(uncertainty)
    return EventAnswer(event, uncertainty, bins)
