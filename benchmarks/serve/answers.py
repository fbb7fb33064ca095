"""The predictions for each row, in one form for all formats."""

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from serve.connection import Answer
from serve.payloads import OIP_LENGTH

NUMPY_TYPES = {"INT64": "<i8", "FP32": "<f4", "BOOL": "?"}
EVENT = re.compile(r"top(\d+)")


@dataclass(frozen=True)
class EventAnswer:
    """One event: the bin, and probability and interval in float32, which every format has."""

    bin: int
    probability: np.float32
    lower: np.float32
    upper: np.float32


@dataclass(frozen=True)
class RowAnswer:
    """The class of a row, and its events."""

    class_: int
    events: tuple[tuple[int, EventAnswer], ...]


def rows_of(format_: str, answer: Answer) -> list[RowAnswer]:
    """Read a response with status 200 to a request of this format."""
    if format_.startswith("oip"):
        return _rows_of_outputs(_outputs(answer))
    return [_row_of_json(found) for found in json.loads(answer.body)["predictions"]]


def classes_of(format_: str, answer: Answer) -> list[int]:
    """Read only the classes, also of the bare server."""
    if format_.startswith("bare"):
        return list(json.loads(answer.body)["class"])
    return [row.class_ for row in rows_of(format_, answer)]


def _row_of_json(found: dict[str, Any]) -> RowAnswer:
    events = []
    for name, event in found.items():
        if matched := EVENT.fullmatch(name):
            numbers = (event["probability"], *event["interval"])
            events.append((int(matched[1]), EventAnswer(event["bin"], *map(np.float32, numbers))))
    return RowAnswer(found["class"], tuple(sorted(events, key=lambda pair: pair[0])))


def _rows_of_outputs(outputs: dict[str, np.ndarray]) -> list[RowAnswer]:
    ks = sorted(int(m[1]) for name in outputs if (m := re.fullmatch(r"top(\d+)_bin", name)))
    rows = []
    for i, class_ in enumerate(outputs["class"]):
        events = tuple(
            (
                k,
                EventAnswer(
                    int(outputs[f"top{k}_bin"][i]),
                    *(outputs[f"top{k}_{n}"][i] for n in ("probability", "lower", "upper")),
                ),
            )
            for k in ks
        )
        rows.append(RowAnswer(int(class_), events))
    return rows


def _outputs(answer: Answer) -> dict[str, np.ndarray]:
    length = answer.header(OIP_LENGTH)
    at = len(answer.body) if length is None else int(length)
    outputs = {}
    for output in json.loads(answer.body[:at])["outputs"]:
        type_ = NUMPY_TYPES[output["datatype"]]
        size = output.get("parameters", {}).get("binary_data_size")
        if size is None:
            array = np.array(output["data"], dtype=type_)
        else:
            array = np.frombuffer(answer.body[at : at + size], dtype=type_)
            at += size
        outputs[output["name"]] = array.reshape(output["shape"])
    return outputs
