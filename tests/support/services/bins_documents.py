"""Bins documents of tests, and a digest of their content that owes nothing to the service's own."""

import copy
import hashlib
import io
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import numpy as np
from running_service import DIGITS, digits
from scipy.special import log_softmax, logsumexp

Document = dict[str, Any]

# Documents of the first schema, step and interpolated, with predictions of their calibrations.
EARLIER = json.loads(
    (DIGITS.parents[1] / "tests" / "data" / "earlier" / "bins_documents.json").read_text()
)

# Every real number of the schema; all other numbers are integers.
REALS = {
    *("level", "threshold", "max_risk", "delta", "coverage", "accuracy", "strength"),
    *("lower", "upper", "probability", "mean_uncertainty", "rate", "step", "scales"),
    # Of curves and learned formulas.
    *("uncertainty", "intercept", "saturated", "linear", "square", "offset", "slope", "second"),
    *("floor", "mixing", "confusion"),
    "effective_counts",
    # Of inputs.
    *("least", "most", "least_spread"),
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
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(value, float) or (key in REALS and is_number):
        return struct.pack(">d", 0.0 if value == 0 else value).hex()
    return value


def changed(document: Document, change: Callable[[Document], object], *, sign: bool = True) -> Any:
    """Return a copy with a change, under a digest that is right for it."""
    made = copy.deepcopy(document)
    change(made)
    if sign:
        made["content_sha256"] = content_digest(made)
    return made


def put(values: Mapping[str, Any]) -> Callable[[Document], None]:
    """Return the change that puts values at paths, such as ``tables.0.event``."""

    def change(document: Document) -> None:
        for path, value in values.items():
            *above, last = [int(key) if key.isdigit() else key for key in path.split(".")]
            place: Any = document
            for key in above:
                place = place[key if isinstance(place, list) else str(key)]
            place[last if isinstance(place, list) else str(last)] = value

    return change


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


def served_table(document: Document, event: int) -> Document:
    """Return the table that serves an event."""
    (found,) = (t for t in document["tables"] if t["event"] == event and t["served"])
    return found


def looked_up(table: Document, uncertainty: np.ndarray) -> dict[str, np.ndarray]:
    """Return bin, probability and interval as docs/http.md describes a step or smooth table."""
    edges = [row["upper"] for row in table["bins"][:-1]]
    bins = np.searchsorted(edges, uncertainty, side="left")
    if table["lookup"] == "smooth":
        curve = table["curve"]
        heights = [curve[name] for name in ("probability", "lower", "upper")]
        columns = [np.interp(uncertainty, curve["uncertainty"], height) for height in heights]
    else:
        rows = [[row["probability"], *row["interval"]] for row in table["bins"]]
        columns = list(np.array(rows)[bins].T)
    return dict(zip(("bin", "probability", "lower", "upper"), (bins, *columns), strict=True))


def learned_uncertainty(model: Document, probabilities: np.ndarray, k: int) -> np.ndarray:
    """Return the learned measure as docs/statistics.md describes it, of all classes' softmax."""
    p = np.maximum(np.asarray(probabilities, np.float64), 1e-37)
    u = log_softmax(np.log(p + model["floor"]) / model["temperature"], axis=1)
    ranked = np.argsort(-p, axis=1, kind="stable")
    eta = (1 + np.array(model["slope"])) * u + model["offset"]
    if model["mixing"]:
        eta += u @ np.array(model["mixing"])
    if model["confusion"]:
        eta += np.array(model["confusion"])[ranked[:, 0]]
    ordered = np.take_along_axis(eta, ranked, axis=1)
    return logsumexp(ordered[:, k:], axis=1) - logsumexp(ordered[:, :k], axis=1)
