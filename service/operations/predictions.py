"""Predictions as the JSON that callers read."""

from typing import Any

import msgspec

from service.operations.predict import EventAnswer, PredictionBatch


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

    def __init__(self, batch: PredictionBatch) -> None:
        ref = batch.calibration.ref
        self._calibration = {"id": str(ref.id), "name": ref.name, "version": ref.version}
        self._rows = _rows(batch)

    def encode_answer(self, start: int, stop: int) -> bytes:
        """Return the answer to the request of these rows."""
        return msgspec.json.encode(
            {"calibration": self._calibration, "predictions": self._rows[start:stop]}
        )


def _rows(batch: PredictionBatch) -> list[dict[str, Any]]:
    names = batch.calibration.class_names
    events = [(f"top{answer.event.k}", _event_rows(answer)) for answer in batch.events]
    flags = None if batch.out_of_distribution is None else batch.out_of_distribution.tolist()
    abstain = [
        (risk, None if found is None else found.tolist()) for risk, found in batch.abstain.items()
    ]
    predictions = []
    rows = zip(batch.classes.tolist(), batch.scores.tolist(), strict=True)
    for row, (ranked, scores) in enumerate(rows):
        prediction: dict[str, Any] = {
            "class": ranked[0],
            "label": names[ranked[0]],
            "classes": [
                ScoredClass(index, names[index], score)
                for index, score in zip(ranked, scores, strict=True)
            ],
        }
        for name, found in events:
            prediction[name] = found[row]
        prediction["out_of_distribution"] = flags and flags[row]
        prediction["abstain"] = {risk: left and left[row] for risk, left in abstain}
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
