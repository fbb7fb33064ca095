"""Answers as plain data: what faster ways to render them, and other formats, must equal."""

from collections.abc import Mapping

import msgspec
import numpy as np

from service.predictions.lookup import class_probabilities

DATATYPES = {"int64": "INT64", "float32": "FP32", "bool": "BOOL"}


def plain_json(batch) -> bytes:
    """Return the answer of ``POST /predict``."""
    ref = batch.calibration.ref
    calibration = {"id": str(ref.id), "name": ref.name, "version": ref.version}
    predictions = [_prediction(batch, row) for row in range(len(batch.classes))]
    return msgspec.json.encode({"calibration": calibration, "predictions": predictions})


def _prediction(batch, row: int) -> dict:
    names = batch.calibration.class_names
    classes, scores = batch.classes[row].tolist(), batch.scores[row].tolist()
    events = {
        f"top{answer.event.k}": {
            "probability": answer.found.probability[row].item(),
            "interval": [answer.found.lower[row].item(), answer.found.upper[row].item()],
            "measure": answer.event.measure,
            "uncertainty": answer.uncertainty[row].item(),
            "bin": answer.found.bin[row].item(),
        }
        for answer in batch.events
    }
    shares = [None] * len(classes)
    if "top1" in events:
        first = events["top1"]["probability"]
        shares = class_probabilities(first, scores, len(names))
    return {
        "class": classes[0],
        "label": names[classes[0]],
        "classes": [
            {"class": index, "label": names[index], "score": score, "probability": share}
            for index, score, share in zip(classes, scores, shares, strict=True)
        ],
        **events,
        "out_of_distribution": _flag(batch.out_of_distribution, row),
        "abstain": {risk: _flag(flags, row) for risk, flags in batch.abstain.items()},
    }


def _flag(flags, row: int) -> bool | None:
    return None if flags is None else flags[row].item()


def plain_arrays(batch) -> dict[str, np.ndarray]:
    """Return the outputs by name, in their order."""
    arrays = {
        "class": batch.classes[:, 0],
        "topk_class": batch.classes,
        "topk_score": batch.scores,
    }
    for answer in batch.events:
        if answer.event.k == 1:
            firsts, n_classes = answer.found.probability, len(batch.calibration.class_names)
            rows = zip(firsts.tolist(), batch.scores.tolist(), strict=True)
            shares = [class_probabilities(first, scores, n_classes) for first, scores in rows]
            arrays["topk_probability"] = np.float32(shares)
    for answer in batch.events:
        name, found = f"top{answer.event.k}", answer.found
        for part in ("probability", "lower", "upper"):
            arrays[f"{name}_{part}"] = getattr(found, part).astype(np.float32)
        arrays[f"{name}_uncertainty"] = answer.uncertainty
        arrays[f"{name}_bin"] = found.bin
    if any(answer.event.k == 1 for answer in batch.events):
        if batch.out_of_distribution is not None:
            arrays["out_of_distribution"] = batch.out_of_distribution
        nobody = np.ones(len(batch.classes), np.bool_)
        risks = {risk: nobody if f is None else f for risk, f in batch.abstain.items()}
        if risks:
            arrays["abstain"] = next(iter(risks.values()))
        arrays |= {f"abstain_{risk}": flags for risk, flags in risks.items()}
    return arrays


def plain_oip(batch, wanted) -> tuple[bytes, int | None]:
    """Return the answer of the Open Inference Protocol, and how much of it is JSON."""
    arrays, ref = plain_arrays(batch), batch.calibration.ref
    outputs, raw = [], []
    for name, is_binary in wanted.outputs or [(name, wanted.all_binary) for name in arrays]:
        array = arrays[name]
        shape = list(array.shape)
        output = {"name": name, "datatype": DATATYPES[array.dtype.name], "shape": shape}
        if is_binary:
            raw.append(array.tobytes())
            output["parameters"] = {"binary_data_size": len(raw[-1])}
        else:
            output["data"] = array.ravel().tolist()
        outputs.append(output)
    answer = {"model_name": ref.name, "model_version": str(ref.version)}
    if wanted.id:
        answer["id"] = wanted.id
    head = msgspec.json.encode(answer | {"outputs": outputs})
    return b"".join([head, *raw]), len(head) if raw else None


def arrays_of(predictions: list[dict]) -> dict[str, np.ndarray]:
    """Return the predictions of a JSON answer as the arrays that other formats hold."""
    columns = {
        "class": [row["class"] for row in predictions],
        "topk_class": [[top["class"] for top in row["classes"]] for row in predictions],
        "topk_score": [[top["score"] for top in row["classes"]] for row in predictions],
        "topk_probability": [[top["probability"] for top in row["classes"]] for row in predictions],
        "out_of_distribution": [row["out_of_distribution"] for row in predictions],
    }
    for event in [name for name in predictions[0] if name.startswith("top")]:
        for part in ("probability", "uncertainty", "bin"):
            columns[f"{event}_{part}"] = [row[event][part] for row in predictions]
        for part, end in (("lower", 0), ("upper", 1)):
            columns[f"{event}_{part}"] = [row[event]["interval"][end] for row in predictions]
    for risk in reversed(predictions[0]["abstain"]):
        # Null, for want of a threshold: no row may be accepted. The first risk decides.
        flags = [row["abstain"][risk] is not False for row in predictions]
        columns |= {f"abstain_{risk}": flags, "abstain": flags}
    return {name: np.array(column) for name, column in columns.items()}


# How far the numbers of one row may differ if the model ran with other rows beside it.
TOLERANCES = {
    "uncertainty": {"rtol": 1e-4},
    "score": {"rtol": 0, "atol": 1e-6},
    # A share of what the probability of Top-1 leaves, which float32 does not hold any closer.
    "topk_probability": {"rtol": 0, "atol": 1e-6},
}


def assert_says(found: Mapping[str, np.ndarray], predictions: list[dict]) -> None:
    """Compare the arrays of an answer with those of a JSON answer to the same rows."""
    for name, expected in arrays_of(predictions).items():
        if expected.dtype.kind == "f":
            kind = name if name == "topk_probability" else name.rpartition("_")[2]
            tolerance = TOLERANCES.get(kind, {"rtol": 1e-6})
            np.testing.assert_allclose(found[name], expected, **tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], expected, err_msg=name)
