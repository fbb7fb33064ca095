"""Columns that have exactly the names of the model's inputs are read by these names."""

import json
from typing import Any

import httpx
import numpy as np
import onnx
import pandas as pd
import pytest
from graph_models import passthrough
from refusals import assert_refused
from running_service import calibrate, calibrated, dry_run, evaluate, send
from skl2onnx import to_onnx
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

CSV = {"Content-Type": "text/csv"}
RNG = np.random.default_rng(4)
FRAME = pd.DataFrame({"age": RNG.integers(20, 80, 300), "income": RNG.normal(4e4, 1e4, 300)})
FRAME["visits"] = RNG.normal(3, 1, 300)
LABELS = (FRAME.income > 4e4).to_numpy().astype(int)


def to_onnx_of_names(names: list[str]) -> bytes:
    """Return a model with an input for each feature, called so."""
    frame = FRAME.set_axis(names, axis=1)
    scaled = ColumnTransformer([("numbers", StandardScaler(), names)])
    pipeline = make_pipeline(scaled, LogisticRegression()).fit(frame, LABELS)
    made: bytes = to_onnx(pipeline, frame[:1]).SerializeToString()
    assert len(onnx.load_from_string(made).graph.input) == 3
    return made


@pytest.fixture(scope="module")
def model() -> bytes:
    return to_onnx_of_names([*FRAME.columns])


def csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


@pytest.fixture(scope="module")
def by_name(client, model) -> str:
    table = csv(FRAME[["visits", "age", "income"]].assign(label=LABELS))
    made = calibrated(client, model=model, calibration=table, evaluation=table)
    assert made["accuracy"]["1"] > 0.9
    assert made["config"]["columns"] == {name: [name] for name in FRAME.columns}
    return str(made["id"])


def test_later_rows_are_read_by_the_same_names(client, by_name) -> None:
    few = FRAME[:20]
    records = {"calibration": by_name, "inputs": few.to_dict("records")}
    expected = client.post("/predict", json=records).json()
    assert "columns" not in expected
    assert [row["class"] for row in expected["predictions"]] == LABELS[:20].tolist()
    arrays = {name: few[[name]].to_numpy().tolist() for name in FRAME.columns}
    assert client.post("/predict", json=records | {"inputs": arrays}).json() == expected
    table = send(client, by_name, csv(few[["income", "visits", "age"]]), CSV).json()
    assert table["predictions"] == expected["predictions"]
    further = evaluate(client, by_name, "later", csv(FRAME.assign(label=LABELS)))
    assert further.status_code == httpx.codes.CREATED, further.text


def test_the_exported_file_names_the_columns(client, by_name) -> None:
    response = client.get(f"/calibrations/{by_name}/model.onnx").raise_for_status()
    model = onnx.load_from_string(response.content)
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(notes["howsure.columns"]) == {name: [name] for name in FRAME.columns}


def test_a_request_with_another_name_says_nothing_of_exports(client, by_name) -> None:
    body = {"calibration": by_name, "inputs": {"Age": [[40.0]]}}
    detail = client.post("/predict", json=body).json()["detail"]
    assert "no such input" in detail
    assert "to_onnx" not in detail


def test_other_names_are_refused(client, model) -> None:
    table = csv(FRAME.rename(columns={"age": "Age"}).assign(label=LABELS))
    response = calibrate(client, model=model, calibration=table)
    assert_refused(response, None, "'age', 'income', 'visits'")


@pytest.mark.parametrize("orient", ["list", "dict"])
def test_frames_by_column_name_orient(client, orient) -> None:
    matrix = FRAME.to_numpy(np.float32)
    bare = make_pipeline(StandardScaler(), LogisticRegression()).fit(matrix, LABELS)
    whole = to_onnx(bare, matrix[:1]).SerializeToString()
    made = calibrated(client, model=whole, calibration=csv(FRAME.assign(label=LABELS)))
    columns = json.loads(json.dumps(FRAME[:3].to_dict(orient)))
    response = client.post("/predict", json={"calibration": made["id"], "inputs": columns})
    assert_refused(response, None, 'orient="records"')


WORDS = ["weight", "group", "label", "uncertainty_own", "score", "correct", "predicted"]


def words_table(word: str) -> tuple[bytes, dict[str, Any]]:
    """Return a table with a feature called so, and the columns to ask for its labels."""
    label = "outcome" if word == "label" else "label"
    frame = FRAME.rename(columns={"visits": word}).assign(**{label: LABELS})
    frame[word] = np.arange(300) % 7 + 1
    return csv(frame), {} if label == "label" else {"columns": {"label": [label]}}


@pytest.mark.parametrize("word", WORDS)
def test_the_inputs_decide_what_is_a_feature(client, word) -> None:
    table, config = words_table(word)
    expected = {"inputs": ["age", "income", word]} | config.get("columns", {})
    assert columns_read(client, table, passthrough(shape=("N", 3)), config) == expected


@pytest.mark.parametrize("word", WORDS[:3])
def test_as_many_columns_or_their_names_decide(client, word) -> None:
    table, config = words_table(word)
    assert columns_read(client, table, passthrough(shape=("N", 4)), config) is None
    names = ["age", "income", word]
    named = onnx.load_from_string(to_onnx_of_names(names))
    # Beside `label` for the labels there is no word for an input of that name.
    expected = None if word == "label" else {name: [name] for name in names}
    assert columns_read(client, table, named, config) == expected


def columns_read(
    client: httpx.Client, table: bytes, model: onnx.ModelProto, config: dict[str, Any]
) -> dict[str, list[str]] | None:
    """Return the columns of each input; None if the table is refused."""
    response = dry_run(client, table, model=model.SerializeToString(), **config)
    if response.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
        return None
    columns: dict[str, list[str]] = response.raise_for_status().json()["config"]["columns"]
    return columns


@pytest.mark.parametrize("word", WORDS[:3])
def test_a_column_that_may_be_a_feature_is_asked_for(client, word) -> None:
    table, config = words_table(word)
    free = passthrough(shape=("N", None)).SerializeToString()
    assert_refused(dry_run(client, table, model=free, **config), None, f"`{word}` may be a feature")
    columns = {"inputs": ["age", "income"], **config.get("columns", {})}
    assert dry_run(client, table, model=free, columns=columns).is_success


def test_a_weight_that_no_sample_can_have(client) -> None:
    table = csv(FRAME.rename(columns={"visits": "weight"}).assign(weight=-1.0, label=LABELS))
    free = passthrough(shape=("N", None)).SerializeToString()
    assert_refused(dry_run(client, table, model=free), None, "if `weight` is a feature")
