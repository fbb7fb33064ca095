"""Predictions as the JSON that callers read."""

from typing import Any

from service.operations.predict import EventAnswer, PredictionBatch


def render_predictions(batch: PredictionBatch) -> dict[str, Any]:
    """Return the answer as plain data, one entry a sample.

    ``classes[].score`` is the model's own softmax; ``top1.probability`` is the calibrated one.
    """
    names = batch.calibration.class_names
    classes, scores = batch.classes.tolist(), batch.scores.tolist()
    events = {f"top{answer.event.k}": _event_rows(answer) for answer in batch.events}
    flags = batch.out_of_distribution
    abstain = {risk: found.tolist() for risk, found in batch.abstain.items() if found is not None}
    predictions = []
    for row, (ranked, ranked_scores) in enumerate(zip(classes, scores, strict=True)):
        prediction: dict[str, Any] = {
            "class": ranked[0],
            "label": names[ranked[0]],
            "classes": [
                {"class": index, "label": names[index], "score": score}
                for index, score in zip(ranked, ranked_scores, strict=True)
            ],
        }
        for name, rows in events.items():
            prediction[name] = rows[row]
        prediction["out_of_distribution"] = None if flags is None else bool(flags[row])
        prediction["abstain"] = {
            risk: abstain[risk][row] if risk in abstain else None for risk in batch.abstain
        }
        predictions.append(prediction)
    ref = batch.calibration.ref
    return {
        "calibration": {"id": str(ref.id), "name": ref.name, "version": ref.version},
        "predictions": predictions,
    }


def _event_rows(answer: EventAnswer) -> list[dict[str, Any]]:
    found = answer.found
    return [
        {
            "probability": probability,
            "interval": [lower, upper],
            "measure": answer.event.measure,
            "uncertainty": uncertainty,
            "bin": index,
        }
        for probability, lower, upper, uncertainty, index in zip(
            found.probability.tolist(),
            found.lower.tolist(),
            found.upper.tolist(),
            answer.uncertainty.tolist(),
            found.bin.tolist(),
            strict=True,
        )
    ]
