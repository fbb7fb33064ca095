"""Answer samples with a class and the calibrated probability that it is right."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.bodies.request import (
    PredictRequest,
    ScoreKind,
    class_scores,
    supplied_columns,
)
from service.core.arrays import Classes
from service.core.bins.table import BinLookup
from service.core.measures import SUPPLIED, is_supplied
from service.core.ranked import rank_scores, recorded_classes
from service.core.records import score_uncertainty
from service.errors import InvalidInput
from service.metrics import AnswerCounts
from service.operations.served import ServedCalibration, ServedEvent
from service.runner import HeadOutputs

SHOWN_CLASSES = 5

Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class EventAnswer:
    """Answers to one event, one per sample."""

    event: ServedEvent
    uncertainty: NDArray[np.float32]
    found: BinLookup


@dataclass(frozen=True)
class PredictionBatch:
    """Answers to one request: classes of shape (n_samples, n_shown), events by ascending k.

    The flags are by the measure that serves Top-1: None where Top-1 was not calibrated, and for a
    risk that no threshold could be found for.
    """

    calibration: ServedCalibration
    classes: Classes
    scores: NDArray[np.float32]
    events: list[EventAnswer]
    out_of_distribution: Flags | None
    abstain: Mapping[str, Flags | None]


def predict_scores(
    served: ServedCalibration, request: PredictRequest, *, max_rows: int
) -> PredictionBatch:
    """Answer a request to a calibration without a model: its rows are a model's outputs.

    Raises
    ------
    InvalidInput
        If the arrays do not suit.
    """
    kind, scores = class_scores(request, n_classes=len(served.class_names), max_rows=max_rows)
    supplied = _supplied(served, request, len(scores))
    outputs = _from_scores(served, kind, scores)
    return answers_of(served, outputs, {**outputs.uncertainty} | supplied)


def answers_of(
    served: ServedCalibration,
    outputs: HeadOutputs,
    columns: Mapping[str, NDArray[np.float32]],
) -> PredictionBatch:
    """Return what the tables make of a head's outputs, ``columns`` being all uncertainties."""
    events = [_answer(event, columns) for event in served.events]
    uncertainty = next((found.uncertainty for found in events if found.event.k == 1), None)
    return PredictionBatch(
        calibration=served,
        classes=outputs.top_classes[:, :SHOWN_CLASSES],
        scores=outputs.top_scores[:, :SHOWN_CLASSES],
        events=events,
        out_of_distribution=_above(uncertainty, served.ood_threshold),
        abstain={
            risk: _above(uncertainty, threshold)
            for risk, threshold in served.abstain_thresholds.items()
        },
    )


def supplied_events(served: ServedCalibration) -> dict[str, str]:
    """Return the columns that come with each request, by the name they are supplied under."""
    return {
        event.measure.removeprefix(SUPPLIED): event.column
        for event in served.events
        if is_supplied(event.measure)
    }


def count_answers(counts: AnswerCounts, batch: PredictionBatch, rows: slice = slice(None)) -> None:
    """Count rows of a batch, all by default, by where they fell."""
    ref, unlike = batch.calibration.ref, batch.out_of_distribution
    counts.count(
        ref.name,
        ref.version,
        rows=len(batch.classes[rows]),
        bins={
            answer.event.k: (answer.found.bin[rows].tolist(), answer.event.table.n_bins)
            for answer in batch.events
        },
        out_of_distribution=None if unlike is None else int(unlike[rows].sum()),
        abstained={
            risk: int(flags[rows].sum())
            for risk, flags in batch.abstain.items()
            if flags is not None
        },
    )


def _supplied(
    served: ServedCalibration, request: PredictRequest, n_rows: int
) -> dict[str, NDArray[np.float32]]:
    """Return the columns that came with the request, for the events they answer."""
    columns = supplied_events(served)
    found = supplied_columns(request, columns, n_rows=n_rows)
    return {columns[name]: values for name, values in found.items()}


def _above(uncertainty: NDArray[np.float32] | None, threshold: float | None) -> Flags | None:
    """Return which samples lie beyond a threshold, which itself lies within."""
    if uncertainty is None or threshold is None:
        return None
    return uncertainty > np.float32(threshold)


def _answer(event: ServedEvent, columns: Mapping[str, NDArray[np.float32]]) -> EventAnswer:
    uncertainty = columns[event.column]
    return EventAnswer(event, uncertainty, event.table.look_up(uncertainty))


def _from_scores(
    served: ServedCalibration, kind: ScoreKind, scores: NDArray[np.float64]
) -> HeadOutputs:
    ranked = rank_scores(scores, n_top=recorded_classes(scores.shape[1], served.top_k))
    top_weights = np.take_along_axis(ranked.weights, ranked.top_classes, axis=1)
    uncertainty = score_uncertainty(scores, top_k=served.top_k, logits=kind == "logits")
    for event in served.events:
        if event.column not in uncertainty and not is_supplied(event.measure):
            raise InvalidInput.at(
                kind, f"Top-{event.k} is answered by {event.measure}, which {kind} do not give"
            )
    return HeadOutputs(
        top_classes=ranked.top_classes,
        top_scores=(top_weights / ranked.total[:, None]).astype(np.float32),
        uncertainty=uncertainty,
    )
