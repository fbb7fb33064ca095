"""Missing values: read in every format where the calibration set has them, else refused."""

import json

import httpx
import numpy as np
import onnxruntime
import pandas as pd
import pytest
from graph_models import constant, make_model, node, value
from onnx import TensorProto
from request_formats import in_bytes, infer, outputs_of
from running_service import JSON, NPZ, calibrate, calibrated, evaluate, npz, quick_config, send

from howsure.client import Client

NAMES = ["age", "income", "depth"]
FILLED = [0.5, 0.25, 0.75]
FLAG = "out_of_distribution"


def imputing(dtype=TensorProto.FLOAT, kind=np.float32):
    """A model that fills missing values in, as an exported SimpleImputer does."""
    return make_model(
        [
            node("IsNaN", ["x"], ["missing"]),
            node("Where", ["missing", "filled", "x"], ["whole"]),
            node("Mul", ["whole", "scale"], ["logits"]),
        ],
        inputs=[value("x", ("N", 3), dtype)],
        outputs=[value("logits", ("N", 3), dtype)],
        initializers=[constant("filled", FILLED, kind), constant("scale", [4.0, 4.0, 4.0], kind)],
    ).SerializeToString()


def with_gaps(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows, of which a fifth lacks `income`, and labels."""
    draw = np.random.default_rng(seed)
    whole = draw.uniform(size=(n, 3)).astype(np.float32)
    labels = (4 * whole + draw.gumbel(size=(n, 3))).argmax(axis=1)
    whole[draw.random(n) < 0.2, 1] = np.nan
    return pd.DataFrame(whole, columns=NAMES), labels


TABLE, LABELS = with_gaps(400, 1)
ROWS, _ = with_gaps(60, 2)
LACKS_AGE = ROWS.assign(age=ROWS.age.where(ROWS.index % 4 != 0))


def csv_of(frame: pd.DataFrame, labels: np.ndarray | None = None) -> bytes:
    frame = frame if labels is None else frame.assign(label=labels)
    return frame.to_csv(index=False).encode()


@pytest.fixture(scope="module")
def gappy(client: httpx.Client) -> dict:
    config = quick_config(name="gappy")
    return calibrated(client, config, model=imputing(), calibration=csv_of(TABLE, LABELS))


@pytest.fixture(scope="module")
def arrays_only(client: httpx.Client) -> dict:
    """The same samples without column names, for a model of float64."""
    model = imputing(TensorProto.DOUBLE, np.float64)
    archive = npz(x=TABLE.to_numpy(np.float64), labels=LABELS)
    return calibrated(client, quick_config(name="arrays"), model=model, calibration=archive)


@pytest.fixture(scope="module")
def complete(client: httpx.Client) -> dict:
    table = csv_of(TABLE.fillna(0.25), LABELS)
    return calibrated(client, quick_config(name="full"), model=imputing(), calibration=table)


def expected_classes(rows: pd.DataFrame) -> list[int]:
    return rows.fillna(dict(zip(NAMES, FILLED, strict=True))).to_numpy().argmax(axis=1).tolist()


def nulls(rows: pd.DataFrame) -> list:
    return json.loads(rows.to_json(orient="values", double_precision=15))


def named(rows: pd.DataFrame) -> list:
    return json.loads(rows.to_json(orient="records", double_precision=15))


FORMATS = {
    "rows of JSON": lambda rows, name: ({"calibration": name, "inputs": nulls(rows)}, JSON),
    "rows by name": lambda rows, name: ({"calibration": name, "inputs": named(rows)}, JSON),
    "CSV": lambda rows, _: (csv_of(rows), {"Content-Type": "text/csv"}),
    "Parquet": lambda rows, _: (
        rows.to_parquet(index=False),
        {"Content-Type": "application/vnd.apache.parquet"},
    ),
    "arrays": lambda rows, _: (npz(inputs=rows.to_numpy()), NPZ),
}


def predictions(client: httpx.Client, kind: str, rows: pd.DataFrame, name: str) -> list[dict]:
    body, headers = FORMATS[kind](rows, name)
    return send(client, name, body, headers).raise_for_status().json()["predictions"]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_answers_rows_that_lack_values(client, gappy, kind) -> None:
    found = predictions(client, kind, ROWS, "gappy")
    assert [row["class"] for row in found] == expected_classes(ROWS)
    assert sum(row[FLAG] for row in found) < len(found) / 10


@pytest.mark.parametrize("kind", ["rows of JSON", "arrays"])
def test_columns_need_no_names(client, arrays_only, kind) -> None:
    found = predictions(client, kind, ROWS, "arrays")
    assert [row["class"] for row in found] == expected_classes(ROWS)
    marked = [row[FLAG] for row in predictions(client, kind, LACKS_AGE, "arrays")]
    assert set(np.flatnonzero(LACKS_AGE.age.isna())) <= set(np.flatnonzero(marked))


def test_the_open_inference_protocol(client, gappy) -> None:
    rows = ROWS.to_numpy()
    asked = {"inputs": [in_bytes("x", rows)], "outputs": [{"name": "class"}]}
    found = outputs_of(infer(client, "gappy", asked, rows.tobytes()))
    assert found["class"].tolist() == expected_classes(ROWS)
    tensor = {"name": "x", "datatype": "FP32", "shape": [60, 3], "data": nulls(ROWS)}
    answer = infer(client, "gappy", {"inputs": [tensor], "outputs": [{"name": "class"}]})
    assert answer.json()["outputs"][0]["data"] == expected_classes(ROWS)


def test_the_client(client, gappy) -> None:
    own, expected = Client(http=client), expected_classes(ROWS)
    for rows in (ROWS, ROWS.to_numpy(), ROWS.to_dict(orient="records"), named(ROWS)):
        assert own.predict("gappy", rows).class_.tolist() == expected


def test_a_value_that_is_never_missing_marks_the_row(client, gappy) -> None:
    """In the service and in the exported file alike."""
    found = predictions(client, "CSV", LACKS_AGE, "gappy")
    marked = [row[FLAG] for row in found]
    assert [row["class"] for row in found] == expected_classes(LACKS_AGE)
    assert set(np.flatnonzero(LACKS_AGE.age.isna())) <= set(np.flatnonzero(marked))
    assert sum(marked) < LACKS_AGE.age.isna().sum() + 6
    content = client.get("/calibrations/gappy/model.onnx").raise_for_status().content
    session = onnxruntime.InferenceSession(content)
    for rows in (LACKS_AGE, ROWS, ROWS * np.nan, ROWS * 100, ROWS - 10):
        classes, flags = session.run(["class", FLAG], {"x": rows.to_numpy()})
        own = predictions(client, "CSV", rows, "gappy")
        assert flags.tolist() == [row[FLAG] for row in own]
        assert classes.tolist() == [row["class"] for row in own]


def test_the_calibration_says_how_many_samples_lack_a_value(client, gappy) -> None:
    share = float(TABLE.income.isna().mean())
    (ranges,) = gappy["data"]["column_ranges"].values()
    assert ranges["missing"] == [0.0, share, 0.0]
    np.testing.assert_allclose(ranges["least"], TABLE.min(), rtol=1e-6)
    np.testing.assert_allclose(ranges["most"], TABLE.max(), rtol=1e-6)
    note = f"Samples that lack a value, by column: `income` {100 * share:.1f} %."
    assert note in gappy["warnings"]


def test_the_bin_tables_keep_it(client, gappy) -> None:
    document = client.get("/calibrations/gappy/bins").raise_for_status().json()
    again = client.post("/calibrations/import", params={"name": "again"}, json=document)
    assert again.status_code == httpx.codes.CREATED, again.text
    found = predictions(client, "CSV", ROWS, "again")
    assert [row["class"] for row in found] == expected_classes(ROWS)


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_are_refused_where_no_sample_lacked_a_value(client, complete, kind) -> None:
    body, headers = FORMATS[kind](ROWS, "full")
    answer = send(client, "full", body, headers)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, answer.text
    first = int(np.flatnonzero(ROWS.income.isna())[0])
    (violation,) = answer.json()["errors"]
    place = ".income" if kind == "rows by name" else "[1]"
    assert violation["location"] == f"inputs[{first}]{place}"
    assert "got a missing value" in violation["message"]
    assert "the calibration set has none in this input" in violation["message"]


def test_nan_in_json_is_told_to_be_null(client, gappy) -> None:
    body = b'{"calibration": "gappy", "inputs": [{"age": 1, "income": NaN, "depth": 2}]}'
    answer = send(client, "gappy", body, JSON)
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert "got NaN at `income`" in answer.text
    assert "write null for a missing value" in answer.text


def test_booleans_by_name_count_as_in_a_table(client, gappy) -> None:
    row = {"age": True, "income": 0.5, "depth": False}
    body = {"calibration": "gappy", "inputs": [row]}
    (found,) = send(client, "gappy", body, JSON).raise_for_status().json()["predictions"]
    assert found["class"] == 0


def test_a_model_that_does_not_handle_them_is_told_apart(client) -> None:
    model = make_model(
        [node("Mul", ["x", "scale"], ["logits"])],
        inputs=[value("x", ("N", 3))],
        outputs=[value("logits", ("N", 3))],
        initializers=[constant("scale", [4.0, 4.0, 4.0])],
    )
    answer = calibrate(
        client,
        config=quick_config(name="none"),
        model=model.SerializeToString(),
        calibration=csv_of(TABLE, LABELS),
    ).json()
    assert answer["status"] == "failed"
    (violation,) = answer["error"]["errors"]
    first = int(np.flatnonzero(TABLE.income.isna())[0])
    assert violation["location"] == f"calibration[{first}]"
    assert "lacks a value, and the model does not handle missing values" in violation["message"]


def test_integers_cannot_be_missing(client) -> None:
    model = make_model(
        [node("Cast", ["x"], ["logits"], to=TensorProto.FLOAT)],
        inputs=[value("x", ("N", 3), TensorProto.INT64)],
        outputs=[value("logits", ("N", 3))],
    )
    table = (TABLE * 10).round().astype("Int64").assign(label=LABELS)
    answer = calibrate(
        client,
        config=quick_config(name="whole"),
        model=model.SerializeToString(),
        calibration=table.to_parquet(index=False),
    )
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, answer.text
    assert "got a missing value, which int64 does not have" in answer.text


def test_a_column_lost_since_is_a_finding(client, gappy) -> None:
    later, labels = with_gaps(300, 3)
    same = evaluate(client, "gappy", "same", csv_of(later, labels)).json()
    assert same["result"]["findings"] == []
    for name, lost in {
        "age": later.assign(age=later.age.where(later.index % 10 != 0)),
        "income": later.assign(income=np.nan),
    }.items():
        answer = evaluate(client, "gappy", name, csv_of(lost, labels)).json()
        (found,) = answer["result"]["findings"]
        assert found["code"] == "inputs-out-of-range"
        assert f"Column `{name}` is empty in {30 if name == 'age' else 300} of 300" in str(found)
