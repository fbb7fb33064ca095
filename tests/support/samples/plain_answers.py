"""JSON answers as the arrays that other formats hold, and a comparison of both."""

from collections.abc import Mapping

import numpy as np


def arrays_of(predictions: list[dict]) -> dict[str, np.ndarray]:
    """Return the predictions of a JSON answer as the arrays that other formats hold."""
    classes, first = [row["classes"] for row in predictions], predictions[0]
    parts = ("class", "score", "probability") if "top1" in first else ("class", "score")
    columns = {f"topk_{p}": [[top[p] for top in ranked] for ranked in classes] for p in parts}
    columns["class"] = [row["class"] for row in predictions]
    for event in (name for name in first if name.startswith("top")):
        for part in ("probability", "uncertainty", "bin"):
            columns[f"{event}_{part}"] = [row[event][part] for row in predictions]
        for part, end in (("lower", 0), ("upper", 1)):
            columns[f"{event}_{part}"] = [row[event]["interval"][end] for row in predictions]
    if first["out_of_distribution"] is not None:
        columns["out_of_distribution"] = [row["out_of_distribution"] for row in predictions]
    for risk in reversed(first["abstain"] if "top1" in first else {}):
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
