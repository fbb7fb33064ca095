"""Tables of probabilities by class name, or of one probability: from the upload to predictions."""

from collections.abc import Mapping
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from refusals import assert_refused
from runner_models import linear
from running_service import NPY, calibrate, calibrated, evaluate, npy, npz, send

RNG = np.random.default_rng(5)
NAMES = ["sales", "billing", "other"]
OUTPUTS = RNG.dirichlet(np.ones(3), 300)
LABELS = np.array([RNG.choice(3, p=row) for row in OUTPUTS])
CHANCE = RNG.random(300)
FRAUD = (RNG.random(300) < CHANCE).astype(int)
FEW = slice(0, 20)
CSV = {"Content-Type": "text/csv"}


def csv(columns: Mapping[str, Any]) -> bytes:
    return pd.DataFrame(dict(columns)).to_csv(index=False).encode()


def by_class(few: slice = slice(None), **labels: Any) -> dict[str, Any]:
    return {f"prob_{name}": OUTPUTS[few, at] for at, name in enumerate(NAMES)} | labels


def by_index(few: slice = slice(None), **labels: Any) -> dict[str, Any]:
    return {f"prob_{k}": OUTPUTS[few, k] for k in range(3)} | labels


def reverse(columns: Mapping[str, Any]) -> dict[str, Any]:
    return dict(reversed(columns.items()))


@pytest.fixture(scope="module")
def intents(client: httpx.Client) -> dict[str, Any]:
    table = by_class(label=np.array(NAMES)[LABELS])
    sets = {"calibration": csv(table), "evaluation": csv(reverse(table))}
    return calibrated(client, {"name": "intents"}, **sets)


def predictions(client: httpx.Client, name: str, columns: Mapping[str, Any]) -> list[Any]:
    return send(client, name, csv(columns), CSV).raise_for_status().json()["predictions"]


def test_later_tables_are_read_by_the_names_of_classes(client, intents) -> None:
    body = {"calibration": "intents", "probabilities": OUTPUTS[FEW].tolist()}
    expected = client.post("/predict", json=body).json()["predictions"]
    assert [row["label"] for row in expected] == [NAMES[k] for k in OUTPUTS[FEW].argmax(axis=1)]
    for columns in (by_class(FEW), reverse(by_class(FEW, label=LABELS[FEW])), by_index(FEW)):
        assert predictions(client, "intents", columns) == expected
    further = csv(reverse(by_class(label=LABELS)))
    result = evaluate(client, "intents", "reversed", further).json()["result"]
    assert result["events"]["1"]["accuracy"] == intents["accuracy"]["1"]


def test_other_classes_are_refused_by_name(client, intents) -> None:
    columns = by_class(FEW)
    columns["prob_bill"] = columns.pop("prob_billing")
    words = ("missing: `prob_billing`", "got also `prob_bill`", "did you mean `prob_billing`?")
    assert_refused(send(client, "intents", csv(columns), CSV), None, *words)
    assert_refused(evaluate(client, "intents", "other", csv(columns)), None, *words)


def test_one_probability_is_that_of_class_1(client) -> None:
    config = {"name": "fraud", "classes": ["fine", "fraud"]}
    resource = calibrated(client, config, calibration=csv({"p": CHANCE, "label": FRAUD}))
    assert resource["accuracy"]["1"] == ((CHANCE > 0.5) == FRAUD).mean()
    alone = client.post("/predict", json={"calibration": "fraud", "probabilities": [0.75, 0.125]})
    assert_refused(alone, None, "[[1 - p, p], ...]")
    body = {"calibration": "fraud", "probabilities": [[0.25, 0.75], [0.875, 0.125]]}
    expected = client.post("/predict", json=body).json()["predictions"]
    assert [row["label"] for row in expected] == ["fraud", "fine"]
    assert predictions(client, "fraud", {"probability": [0.75, 0.125]}) == expected


def test_unnamed_rows_are_marked_where_classes_have_names(client, intents) -> None:
    few = OUTPUTS[:5]
    for kind, outputs in {"logits": np.log(few), "probabilities": few}.items():
        body = {"calibration": "intents", kind: outputs.tolist()}
        unnamed = client.post("/predict", json=body).json()
        assert unnamed["columns"] == "positional"
        body[kind] = [reverse(dict(zip(NAMES, row, strict=True))) for row in outputs.tolist()]
        named = client.post("/predict", json=body).json()
        assert "columns" not in named
        assert named["predictions"] == unnamed["predictions"]
    assert send(client, "intents", csv(by_index(FEW)), CSV).json()["columns"] == "positional"
    assert "columns" not in send(client, "intents", csv(by_class(FEW)), CSV).json()


REFUSED_ROWS = [
    ({"Sales": 1.0, "billing": 1.0, "other": 1.0}, ["missing: `sales`", "unknown: `Sales`"]),
    ({f"prob_{name}": 1 / 3 for name in NAMES}, ["write `sales`, without `prob_`"]),
    ([20.0, 30.0, 50.0], ["percentages: divide by 100"]),
]


@pytest.mark.parametrize(("row", "named"), REFUSED_ROWS)
def test_rows_by_other_names_or_in_percent_are_refused(client, intents, row, named) -> None:
    body = {"calibration": "intents", "probabilities": [row]}
    assert_refused(client.post("/predict", json=body), None, *named)


LOGIT, BINARY = OUTPUTS[:, 0] * 4 - 2, np.minimum(LABELS, 1)
TABLE = {name: OUTPUTS[:, k] for k, name in enumerate(NAMES)} | {"label": LABELS}
PAIRS = csv({"score": CHANCE, "correct": FRAUD})
WITH_ID = csv({"ticket_id": np.arange(300), **TABLE})
UPLOADS = {
    "pairs with a model": (PAIRS, {"model": linear().SerializeToString()}, "without a model"),
    "one score of two classes": (csv({"logit": LOGIT, "label": BINARY}), {}, "`logit_1` = z"),
    "an array of one score": (npz(logits=LOGIT, labels=BINARY), {}, "column_stack([0 * z, z])"),
    "columns called as classes": (WITH_ID, {}, "(rename `other` to `prob_other`)"),
}


@pytest.mark.parametrize("case", UPLOADS)
def test_tables_of_other_columns_are_told_the_fix(client, case) -> None:
    content, parts, named = UPLOADS[case]
    assert_refused(calibrate(client, calibration=content, **parts), None, named)


def test_an_array_without_a_name_is_what_the_calibration_set_held(client, intents, shelf) -> None:
    rows = OUTPUTS[:4]
    cases = (intents, "probabilities", rows), (shelf("logits"), "logits", np.log(rows))
    for made, kind, sent in cases:
        response = send(client, made["id"], npy(sent), NPY)
        body = {"calibration": made["id"], kind: sent.tolist()}
        named = client.post("/predict", json=body).raise_for_status().json()
        assert response.raise_for_status().json()["predictions"] == named["predictions"]
