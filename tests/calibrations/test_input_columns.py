"""Columns that have exactly the names of the model's inputs are read by these names."""

import json

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


@pytest.fixture(scope="module")
def model() -> bytes:
    scaled = ColumnTransformer([("numbers", StandardScaler(), list(FRAME.columns))])
    pipeline = make_pipeline(scaled, LogisticRegression()).fit(FRAME, LABELS)
    made: bytes = to_onnx(pipeline, FRAME[:1]).SerializeToString()
    assert len(onnx.load_from_string(made).graph.input) == 3
    return made


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


@pytest.mark.parametrize("width", [None, 3])
def test_a_weight_that_may_be_a_feature_is_asked_for(client, width) -> None:
    free = passthrough(shape=("N", width)).SerializeToString()
    frame = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["a", "b", "c"])
    table = csv(frame.assign(weight=1.5, label=np.arange(60) % 3))
    assert dry_run(client, table, model=free, columns={"inputs": ["a", "b", "c"]}).is_success
    unnamed = dry_run(client, table, model=free)
    assert unnamed.is_success == (width is not None), unnamed.text
    assert unnamed.is_success or "`weight` may be a feature" in unnamed.json()["detail"]
