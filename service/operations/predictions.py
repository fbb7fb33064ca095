"""Predictions as the JSON that callers read."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from service.operations.predict import EventAnswer, PredictionBatch
from service.storage.references import CalibrationRef


class ScoredClass(msgspec.Struct, gc=False):
    """A class that was shown; ``score`` is the model's own softmax."""

    index: int = msgspec.field(name="class")
    label: str
    score: float


class EventProbability(msgspec.Struct, gc=False):
    """What was found for an event; ``probability`` is the calibrated one."""

    probability: float
    interval: tuple[float, float]
    measure: str
    uncertainty: float
    bin: int


class Predictions:
    """Predictions for all rows of a run, from which the answers to its requests are cut."""

    def __init__(self, ref: CalibrationRef, rows: list[dict[str, Any]]) -> None:
        self._calibration = {"id": str(ref.id), "name": ref.name, "version": ref.version}
        self._rows = rows

    @classmethod
    def of(cls, batch: PredictionBatch) -> "Predictions":
        """Return those of a batch."""
        flags, abstain = batch.out_of_distribution, batch.abstain.items()
        rows = prediction_rows(
            batch.calibration.class_names,
            batch.classes.tolist(),
            batch.scores.tolist(),
            events=[(f"top{answer.event.k}", _event_rows(answer)) for answer in batch.events],
            unlike=None if flags is None else flags.tolist(),
            abstain={risk: None if found is None else found.tolist() for risk, found in abstain},
        )
        return cls(batch.calibration.ref, rows)

    def encode_answer(self, start: int, stop: int) -> bytes:
        """Return the answer to the request of these rows."""
        return msgspec.json.encode(
            {"calibration": self._calibration, "predictions": self._rows[start:stop]}
        )


def prediction_rows(
    names: Sequence[str],
    classes: list[list[int]],
    scores: list[list[float]],
    *,
    events: Sequence[tuple[str, list[EventProbability]]],
    unlike: list[bool] | None,
    abstain: Mapping[str, list[bool] | None],
) -> list[dict[str, Any]]:
    """Return the predictions of all rows; ``classes`` and ``scores`` are those that are shown."""
    predictions = []
    for row, (ranked, ranked_scores) in enumerate(zip(classes, scores, strict=True)):
        prediction: dict[str, Any] = {
            "class": ranked[0],
            "label": names[ranked[0]],
            "classes": [
                ScoredClass(index, names[index], score)
                for index, score in zip(ranked, ranked_scores, strict=True)
            ],
        }
        for name, found in events:
            prediction[name] = found[row]
        prediction["out_of_distribution"] = unlike and unlike[row]
        prediction["abstain"] = {risk: left and left[row] for risk, left in abstain.items()}
        predictions.append(prediction)
    return predictions


def _event_rows(answer: EventAnswer) -> list[EventProbability]:
    found, measure = answer.found, answer.event.measure
    return [
        EventProbability(probability, (lower, upper), measure, uncertainty, index)
        for probability, lower, upper, uncertainty, index in zip(
            found.probability.tolist(),
            found.lower.tolist(),
            found.upper.tolist(),
            answer.uncertainty.tolist(),
            found.bin.tolist(),
            strict=True,
        )
    ]
