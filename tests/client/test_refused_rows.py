"""A refusal names the row of what the caller gave, in however many requests it was sent."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from graph_models import node
from runner_models import of_rows
from running_service import QUICK

from howsure.client import Client, HowsureError

NAMES = ["age", "income", "depth"]
ROW, N_ROWS, N_SENT = 37, 50, 10


SCALING = of_rows(node("Mul", ["x", "scale"], ["y"]), shape=("N", 3), scale=[4.0] * 3)


def table(n: int, seed: int) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return pd.DataFrame(draw.uniform(size=(n, 3)).astype(np.float32), columns=NAMES)


@pytest.fixture(scope="module", autouse=True)
def calibrations(client: Client) -> None:
    rows = table(300, 1)
    labels = (4 * rows + np.random.default_rng(2).gumbel(size=rows.shape)).to_numpy().argmax(axis=1)
    client.calibrate(SCALING, rows, labels=labels, name="rows", config=QUICK)
    bracketed = rows.set_axis([f"x[{k}]" for k in range(3)], axis=1)
    client.calibrate(SCALING, bracketed, labels=labels, name="brackets", config=QUICK)


def lacking() -> pd.DataFrame:
    rows = table(N_ROWS, 3)
    rows.loc[ROW, "income"] = np.nan
    return rows


def without_a_name() -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = table(N_ROWS, 3).to_dict("records")
    del records[ROW]["depth"]
    return records


ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "array": ({"inputs": lacking().to_numpy()}, f"inputs[{ROW}][1]"),
    "array by name": ({"inputs": {"x": lacking().to_numpy()}}, f"inputs[{ROW}][1]"),
    "frame": ({"inputs": lacking()}, f"inputs[{ROW}][1]"),
    "infinite frame": ({"inputs": lacking().fillna(np.inf)}, f"body.income[{ROW}]"),
    "records": ({"inputs": lacking().to_dict("records")}, f"inputs[{ROW}].income"),
    "record without a name": ({"inputs": without_a_name()}, f"inputs[{ROW}]"),
    "logits": ({"logits": lacking().to_numpy()}, f"logits[{ROW}][1]"),
}


@pytest.mark.parametrize("form", ROWS)
def test_the_client_names_the_row_of_the_caller(client, shelf, form) -> None:
    rows, location = ROWS[form]
    calibration = shelf("logits")["name"] if "logits" in rows else "rows"
    for size in (N_SENT, None):
        with pytest.raises(HowsureError) as refused:
            client.predict(calibration, rows_per_request=size, **rows)
        (error,) = refused.value.errors
        assert error["location"] == location
        assert f"{location}: " in str(refused.value)
        if form in ("array", "array by name", "frame"):
            assert error["message"].startswith("column 'income': ")


def test_a_column_with_brackets_in_its_name_is_no_row(client) -> None:
    rows = lacking().fillna(np.inf).set_axis([f"x[{k}]" for k in range(3)], axis=1)
    for size in (N_SENT, None):
        with pytest.raises(HowsureError) as refused:
            client.predict("brackets", rows, rows_per_request=size)
        assert refused.value.errors[0]["location"] == f"body.x[1][{ROW}]"
