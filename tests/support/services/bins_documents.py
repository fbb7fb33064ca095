"""Bins documents of tests, and a digest of their content that owes nothing to the service's own."""

import copy
import hashlib
import io
import json
import struct
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
from running_service import digits

Document = dict[str, Any]

# Every real number of the schema; all other numbers are integers.
REALS = {
    "level",
    "threshold",
    "max_risk",
    "delta",
    "coverage",
    "accuracy",
    "strength",
    "lower",
    "upper",
    "probability",
    "mean_uncertainty",
    "rate",
    "step",
    "scales",
}


def content_digest(document: Document) -> str:
    """Return the digest as docs/http.md describes it."""
    content = copy.deepcopy(document)
    del content["content_sha256"], content["calibration"]
    for table in content["tables"]:
        for found in table["bins"]:
            found.pop("weight", None)
            found.pop("odds_ratio", None)
    text = json.dumps(_bits(content), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _bits(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        inside = key if key == "scales" else None
        return {name: _bits(part, inside or name) for name, part in value.items()}
    if isinstance(value, list):
        # The interval of a bin is two numbers, that of a table an object.
        return [_bits(part, "probability" if key == "interval" else key) for part in value]
    if key in REALS and isinstance(value, int | float) and not isinstance(value, bool):
        return struct.pack(">d", 0.0 if value == 0 else value).hex()
    return value


def changed(document: Document, change: Callable[[Document], object], *, sign: bool = True) -> Any:
    """Return a copy with a change, under a digest that is right for it."""
    made = copy.deepcopy(document)
    change(made)
    if sign:
        made["content_sha256"] = content_digest(made)
    return made


def digits_set(name: str = "evaluation") -> dict[str, Any]:
    """Return inputs and labels of the digits example."""
    with np.load(io.BytesIO(digits(f"{name}.npz"))) as arrays:
        return dict(arrays)


def exported(client: httpx.Client, reference: str) -> Document:
    """Return the document of a calibration."""
    answer = client.get(f"/calibrations/{reference}/bins")
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


def answers(client: httpx.Client, reference: str, **rows: Any) -> list[Document]:
    """Return the predictions, as text would compare them: every digit counts."""
    body = {"calibration": reference, **rows}
    answer = client.post("/predict", json=body)
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()["predictions"]
