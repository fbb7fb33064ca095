"""JSON responses of ``POST /predict``, made from Python numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import msgspec

from howsure.statistics.label_model.class_list import class_shares
from service.metrics.answers import AnswerCounts
from service.predictions.lookup import PredictionBatch, class_probabilities
from service.predictions.prediction_request import POSITIONAL
from service.predictions.served_calibration import (
    EventProbability,
    Flags,
    ServedCalibration,
)
from service.runner.model_output import SERVED_CLASSES, OutputMatrix


class ScoredClass(msgspec.Struct, gc=False):
    """One of the most probable classes; ``score`` is the model's own softmax.

    ``probability`` agrees with Top-1; None if Top-1 was not calibrated.
    """

    index: int = msgspec.field(name="class")
    label: str
    score: float
    probability: float | None


@dataclass(frozen=True)
class JsonAnswers:
    """Answers to all rows of a run; ``classes``, ``scores``, ``shares`` are of the best classes."""

    served: ServedCalibration
    classes: list[list[int]]
    scores: list[list[float]]
    shares: list[list[float]]
    events: list[list[EventProbability]]
    out_of_distribution: list[bool] | None
    abstain: Mapping[str, list[bool]]
    adversarial: list[bool] | None = None

    @classmethod
    def of_numbers(cls, served: ServedCalibration, matrix: OutputMatrix) -> "JsonAnswers | None":
        """Answer a few rows without arrays; None if there are many, or they need arrays."""
        rows, outputs = matrix.numbers, matrix.outputs
        if rows is None or not served.is_scalar:
            return None
        odds = served.odds(outputs)
        events = [
            [event.at(value) for value in event.uncertainty(outputs, odds).tolist()]
            for event in served.events
            if event.at is not None
        ]
        top1 = [0.0] * len(rows)
        if served.top1 is not None:
            top1 = [found.uncertainty for found in events[served.top1]]
        flags, unlike = served.flags, _unlike(rows, matrix.places, served)
        shares = class_shares(outputs.top_scores, odds, len(served.class_names))
        return cls(
            served,
            outputs.top_classes[:, :SERVED_CLASSES].tolist(),
            outputs.top_scores[:, :SERVED_CLASSES].tolist(),
            shares[:, :SERVED_CLASSES].tolist(),
            events,
            None if (beyond := _beyond(top1, flags)) is None else _or(beyond, unlike),
            {name: _or(_above(top1, limit), unlike) for name, limit in flags.abstain.items()},
            _adversarial(events, served),
        )

    @classmethod
    def of_batch(cls, batch: PredictionBatch) -> "JsonAnswers":
        """Return the same answers made from arrays."""
        return cls(
            batch.calibration,
            batch.classes.tolist(),
            batch.scores.tolist(),
            batch.shares.tolist(),
            list(_event_rows(batch)),
            None if batch.out_of_distribution is None else batch.out_of_distribution.tolist(),
            {name: found.tolist() for name, found in batch.abstain.items()},
            None if batch.adversarial is None else batch.adversarial.tolist(),
        )

    def encode(self, start: int, stop: int, *, by_position: bool = False) -> bytes:
        """Return the response body for the rows from ``start`` to before ``stop``."""
        body: dict[str, Any] = {"calibration": self.served.json_ref}
        if by_position:
            body["columns"] = POSITIONAL
        if self.served.unproven:
            body["unproven"] = self.served.unproven
        body["predictions"] = self._rows[start:stop]
        return msgspec.json.encode(body)

    def record_metrics(self, counts: AnswerCounts, rows: slice) -> None:
        """Count some of the rows by bin and flag."""
        flagged = self.out_of_distribution
        counts.count(
            self.served.ref,
            rows=len(self.classes[rows]),
            bins={
                event.k: ([answer.bin for answer in answers[rows]], event.table.n_bins)
                for event, answers in zip(self.served.events, self.events, strict=True)
            },
            out_of_distribution=None if flagged is None else sum(flagged[rows]),
            abstained={name: sum(found[rows]) for name, found in self.abstain.items()},
        )

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        events = list(zip([event.name for event in self.served.events], self.events, strict=True))
        flagged, abstain = self.out_of_distribution, self.abstain.items()
        rows = []
        for row, (ranked, scores) in enumerate(zip(self.classes, self.scores, strict=True)):
            answer: dict[str, Any] = {}
            if self.served.has_classes:
                answer = self._classes_of(ranked, scores, row)
            for name, found in events:
                answer[name] = found[row]
            answer["out_of_distribution"] = flagged and flagged[row]
            if self.adversarial is not None:
                answer["adversarial"] = self.adversarial[row]
            answer["abstain"] = {name: left[row] for name, left in abstain}
            rows.append(answer)
        return rows

    def _classes_of(self, ranked: list[int], scores: list[float], row: int) -> dict[str, Any]:
        """Return the part of an answer about classes, which pairs do not have."""
        names, top1 = self.served.class_names, self.served.top1
        probabilities: list[float] | list[None] = [None] * len(ranked)
        if top1 is not None:
            first = self.events[top1][row].probability
            probabilities = class_probabilities(first, self.shares[row])
        return {
            "class": ranked[0],
            "label": names[ranked[0]],
            "classes": [
                ScoredClass(index, names[index], score, probability)
                for index, score, probability in zip(ranked, scores, probabilities, strict=True)
            ],
        }


def _event_rows(batch: PredictionBatch) -> Iterator[list[EventProbability]]:
    for answer in batch.events:
        found, measure = answer.found, answer.event.measure
        columns = (found.probability, found.lower, found.upper, answer.uncertainty, found.bin)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        yield [
            EventProbability(probability, (lower, upper), measure, uncertainty, index)
            for probability, lower, upper, uncertainty, index in rows
        ]


def _unlike(
    rows: list[list[float]], places: Mapping[str, int], served: ServedCalibration
) -> list[bool] | None:
    """Return which rows are on another scale; None if the calibration set's scale is unknown."""
    found: list[bool] | None = None
    for least, most, known in served.extents:
        ends = itemgetter(places[least], places[most])
        found = _or([bool(known.is_unlike(*ends(row))) for row in rows], found)
    for name in served.marks:
        found = _or([row[places[name]] > 0.0 for row in rows], found)
    return found


def _or(one: list[bool], other: list[bool] | None) -> list[bool]:
    """Return which rows either of the two flags."""
    if other is None:
        return one
    return [a or b for a, b in zip(one, other, strict=True)]


def _beyond(values: list[float], flags: Flags) -> list[bool] | None:
    threshold, least = flags.out_of_distribution, flags.least_uncertainty
    if threshold is None:
        return None
    if least is None:
        return _above(values, threshold)
    return [value > threshold or value < least for value in values]


def _adversarial(
    events: list[list[EventProbability]], served: ServedCalibration
) -> list[bool] | None:
    if served.adversarial is None:
        return None
    place, threshold = served.adversarial
    return _above([answer.uncertainty for answer in events[place]], threshold)


def _above(values: list[float], threshold: float) -> list[bool]:
    return [value > threshold for value in values]
