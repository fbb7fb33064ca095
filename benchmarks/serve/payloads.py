"""Requests for the same rows in every format."""

import base64
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

JSON = {"Content-Type": "application/json"}
RAW = {"Content-Type": "application/octet-stream"}
OIP_LENGTH = "Inference-Header-Content-Length"


@dataclass(frozen=True)
class Payload:
    """One POST, and the format of its response."""

    format: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def wire(self, address: str) -> bytes:
        """Return the bytes of the request on a persistent connection."""
        lines = [f"POST {self.path} HTTP/1.1", f"Host: {address}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines += [f"Content-Length: {len(self.body)}", "", ""]
        return "\r\n".join(lines).encode() + self.body


def in_json(calibration: str, rows: np.ndarray) -> Payload:
    """Return rows as lists of numbers."""
    return _predict("json", {"calibration": calibration, "inputs": rows.tolist()})


def in_base64(calibration: str, rows: np.ndarray) -> Payload:
    """Return rows as a JSON object with their bytes."""
    text = base64.b64encode(rows.astype("<f4").tobytes()).decode()
    tensor = {"b64": text, "dtype": "float32", "shape": list(rows.shape)}
    return _predict("base64", {"calibration": calibration, "inputs": tensor})


def in_npy(calibration: str, rows: np.ndarray) -> Payload:
    """Return rows as ``numpy.save`` writes them."""
    file = io.BytesIO()
    np.save(file, rows)
    return _arrays("npy", calibration, file)


def in_npz(calibration: str, rows: np.ndarray) -> Payload:
    """Return rows as ``numpy.savez`` writes them."""
    file = io.BytesIO()
    np.savez(file, inputs=rows)
    return _arrays("npz", calibration, file)


def in_oip_json(calibration: str, rows: np.ndarray) -> Payload:
    """Return rows as a JSON request of the Open Inference Protocol."""
    body = json.dumps({"inputs": [_tensor(rows) | {"data": rows.ravel().tolist()}]})
    return Payload("oip-json", f"/v2/models/{calibration}/infer", JSON, body.encode())


def in_oip(calibration: str, rows: np.ndarray) -> Payload:
    """Return rows, and request outputs, by the binary extension of that protocol."""
    raw = rows.astype("<f4").tobytes()
    tensor = _tensor(rows) | {"parameters": {"binary_data_size": len(raw)}}
    asked = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
    head = json.dumps(asked, separators=(",", ":")).encode()
    headers = RAW | {OIP_LENGTH: str(len(head))}
    return Payload("oip", f"/v2/models/{calibration}/infer", headers, head + raw)


def bare_json(model: str, rows: np.ndarray) -> Payload:
    """Return rows as lists of numbers, for the bare server."""
    body = json.dumps({"inputs": rows.tolist()}, separators=(",", ":")).encode()
    return Payload("bare-json", f"/{model}/json", JSON, body)


def bare_raw(model: str, rows: np.ndarray) -> Payload:
    """Return rows as plain bytes, for the bare server."""
    return Payload("bare-raw", f"/{model}/raw", RAW, rows.astype("<f4").tobytes())


Write = Callable[[str, np.ndarray], Payload]
SERVICE_FORMATS: dict[str, Write] = {
    "json": in_json,
    "base64": in_base64,
    "npy": in_npy,
    "npz": in_npz,
    "oip-json": in_oip_json,
    "oip": in_oip,
}


def _predict(name: str, body: dict[str, Any]) -> Payload:
    return Payload(name, "/predict", JSON, json.dumps(body, separators=(",", ":")).encode())


def _arrays(name: str, calibration: str, file: io.BytesIO) -> Payload:
    headers = {"Content-Type": f"application/x-{name}"}
    return Payload(name, f"/predict?calibration={calibration}", headers, file.getvalue())


def _tensor(rows: np.ndarray) -> dict[str, Any]:
    return {"name": "input", "shape": list(rows.shape), "datatype": "FP32"}
