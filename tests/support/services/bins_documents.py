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
    "effective_counts",
    # Of inputs.
    *("least", "most", "least_spread"),
}
N_TEMPERATURES = 24


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


def learned_uncertainty(formula: Document, probabilities: np.ndarray) -> np.ndarray:
    """Return the learned measure as docs/statistics.md describes it, of a softmax in float64."""
    p = np.asarray(probabilities, np.float64)
    ranked = np.argsort(-p, axis=1, kind="stable")
    ratios = np.take_along_axis(p, ranked, axis=1)
    ratios = ratios / ratios[:, :1]
    k, entropy = formula["k"], -np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=1)
    temperature = np.geomspace(0.25, 8.0, N_TEMPERATURES)[formula["temperature"]]
    inputs = [
        _log_rest(ratios ** (1 / temperature), k, 1e-37 if k == 1 else 1e-6),
        _log_rest(ratios, k, 1e-37),
        np.log(np.maximum(entropy, 1e-37)),
        np.log(np.maximum(ratios[:, 1], 1e-37)),
    ]
    values = np.clip(np.stack(inputs, axis=1), formula["lower"], formula["upper"])
    by_class = {name: np.array(formula[name]) for name in ("offset", "slope", "second")}
    total = formula["intercept"] + values @ formula["linear"] + values**2 @ formula["square"]
    total += by_class["offset"][ranked[:, 0]] + by_class["second"][ranked[:, 1]]
    total += by_class["slope"][ranked[:, 0]] * values[:, 0]
    return -(total + formula["saturated"] * (inputs[1] < -85))


def _log_rest(ratios: np.ndarray, k: int, least: float) -> np.ndarray:
    return np.log(np.maximum(ratios[:, k:].sum(axis=1) / ratios[:, :k].sum(axis=1), least))
