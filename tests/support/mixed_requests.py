"""Requests for predictions in every form that they may have, and what their answers say."""

import gzip
import io
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx
import numpy as np
from oip_service import LENGTH, in_bytes, in_json, outputs_of
from predict_bodies import NPY, NPZ, encoded, npy, npz

AS_NPZ = {"Accept": "application/x-npz"}
PARTS = ("probability", "lower", "upper", "bin")


@dataclass(frozen=True)
class Sent:
    """A request as it goes out."""

    path: str
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)

    def by(self, client: httpx.Client) -> httpx.Response:
        """Send it."""
        return client.post(
            self.path, content=self.content, headers=self.headers, params=self.params
        )


Form: TypeAlias = Callable[[str, str, np.ndarray], Sent]


def as_json(name: str, kind: str, rows: np.ndarray) -> Sent:
    return _json({"calibration": name, kind: rows.tolist()})


def as_json_named_last(name: str, kind: str, rows: np.ndarray) -> Sent:
    return _json({kind: rows.tolist(), "calibration": name})


def as_json_named_in_escapes(name: str, kind: str, rows: np.ndarray) -> Sent:
    letters = "".join(f"\\u{ord(letter):04x}" for letter in name)
    text = json.dumps({"calibration": "?", kind: rows.tolist()}).replace("?", letters)
    return Sent("/predict", text.encode())


def as_base64(name: str, kind: str, rows: np.ndarray) -> Sent:
    return _json({"calibration": name, kind: encoded(rows)})


def as_npy(name: str, _: str, rows: np.ndarray) -> Sent:
    return Sent("/predict", npy(rows), NPY, {"calibration": name})


def as_npz(name: str, kind: str, rows: np.ndarray) -> Sent:
    arrays = {kind: rows}
    return Sent("/predict", npz(compressed=True, **arrays), NPZ | AS_NPZ, {"calibration": name})


def as_tensors_in_json(name: str, kind: str, rows: np.ndarray) -> Sent:
    return Sent(_infer(name), json.dumps({"inputs": [in_json(kind, rows)]}).encode())


def as_tensors_in_bytes(name: str, kind: str, rows: np.ndarray) -> Sent:
    return _tensors(name, rows, {"inputs": [in_bytes(kind, rows)]})


def as_tensors_with_bytes_back(name: str, kind: str, rows: np.ndarray) -> Sent:
    wanted = {"parameters": {"binary_data_output": True, "timeout": 60_000_000}}
    return _tensors(name, rows, {"inputs": [in_bytes(kind, rows)], **wanted})


def as_gzip(name: str, kind: str, rows: np.ndarray) -> Sent:
    return _packed(as_tensors_with_bytes_back(name, kind, rows), "gzip", gzip.compress)


def as_deflate(name: str, kind: str, rows: np.ndarray) -> Sent:
    return _packed(as_tensors_in_json(name, kind, rows), "deflate", zlib.compress)


FORMS: tuple[Form, ...] = (
    as_json,
    as_json_named_last,
    as_json_named_in_escapes,
    as_base64,
    as_npy,
    as_npz,
    as_tensors_in_json,
    as_tensors_in_bytes,
    as_tensors_with_bytes_back,
    as_gzip,
    as_deflate,
)


def with_nan(name: str, kind: str, rows: np.ndarray) -> Sent:
    spoilt = rows.copy()
    spoilt[-1, 0] = np.nan
    return as_npy(name, kind, spoilt)


def too_wide(name: str, kind: str, rows: np.ndarray) -> Sent:
    return as_json(name, kind, np.hstack([rows, rows]))


def too_narrow(name: str, kind: str, rows: np.ndarray) -> Sent:
    return as_tensors_in_bytes(name, kind, np.ascontiguousarray(rows[:, :-1]))


def asks_for_nothing_there_is(name: str, kind: str, rows: np.ndarray) -> Sent:
    wanted = {"outputs": [{"name": "class"}, {"name": "nothing"}]}
    return _tensors(name, rows, {"inputs": [in_bytes(kind, rows)], **wanted})


def names_another_at_last(name: str, kind: str, rows: np.ndarray) -> Sent:
    text = as_json(name, kind, rows).content
    return Sent("/predict", text[:-1] + b', "calibration": "other"}')


def names_it_within(name: str, kind: str, rows: np.ndarray) -> Sent:
    return _json({"of": {"calibration": name}, kind: rows.tolist()})


def names_none(_: str, kind: str, rows: np.ndarray) -> Sent:
    return _json({kind: rows.tolist()})


def names_it_by_a_number(_: str, kind: str, rows: np.ndarray) -> Sent:
    return _json({"calibration": 1, kind: rows.tolist()})


def names_a_stranger(_: str, kind: str, rows: np.ndarray) -> Sent:
    return as_json("a stränger", kind, rows)


def breaks_off(name: str, kind: str, rows: np.ndarray) -> Sent:
    return Sent("/predict", as_json(name, kind, rows).content[:-3])


def is_no_gzip(name: str, kind: str, rows: np.ndarray) -> Sent:
    sent = as_tensors_in_json(name, kind, rows)
    return Sent(sent.path, sent.content, {"Content-Encoding": "gzip"})


REFUSED: tuple[Form, ...] = (
    with_nan,
    too_wide,
    too_narrow,
    asks_for_nothing_there_is,
    names_another_at_last,
    names_it_within,
    names_none,
    names_it_by_a_number,
    names_a_stranger,
    breaks_off,
    is_no_gzip,
)


def said(answer: httpx.Response) -> tuple[Any, ...]:
    """Return what an answer says that other rows may not change: status, and rows or sentence."""
    if answer.status_code != httpx.codes.OK:
        problem = {name: part for name, part in answer.json().items() if name != "request_id"}
        return answer.status_code, json.dumps(problem), answer.headers.get("retry-after")
    return answer.status_code, said_of_rows(answer)


def said_of_rows(answer: httpx.Response) -> dict[str, list[Any]]:
    """Return class, bins, probabilities and intervals, of whatever form."""
    if answer.headers["content-type"].startswith("application/x-npz"):
        return _of_arrays(dict(np.load(io.BytesIO(answer.content))))
    if "predictions" not in answer.text[:200] and "outputs" in answer.text[:200]:
        return _of_arrays(outputs_of(answer))
    return _of_predictions(answer.json()["predictions"])


def _of_arrays(arrays: dict[str, np.ndarray]) -> dict[str, list[Any]]:
    names = [name for name in arrays if name == "class" or name.endswith(PARTS)]
    return {name: arrays[name].tolist() for name in names}


def _of_predictions(predictions: list[dict[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"class": [row["class"] for row in predictions]}
    for event in [name for name in predictions[0] if name.startswith("top")]:
        of_event = [row[event] for row in predictions]
        found[f"{event}_bin"] = [row["bin"] for row in of_event]
        for place, values in (
            ("probability", [row["probability"] for row in of_event]),
            ("lower", [row["interval"][0] for row in of_event]),
            ("upper", [row["interval"][1] for row in of_event]),
        ):
            found[f"{event}_{place}"] = np.float32(values).tolist()
    return found


def _json(body: dict[str, Any]) -> Sent:
    return Sent("/predict", json.dumps(body, ensure_ascii=False).encode())


def _infer(name: str) -> str:
    return f"/v2/models/{name}/infer"


def _tensors(name: str, rows: np.ndarray, request: dict[str, Any]) -> Sent:
    head = json.dumps(request).encode()
    return Sent(_infer(name), head + rows.tobytes(), {LENGTH: str(len(head))})


def _packed(sent: Sent, encoding: str, pack: Callable[[bytes], bytes]) -> Sent:
    return Sent(sent.path, pack(sent.content), sent.headers | {"Content-Encoding": encoding})
