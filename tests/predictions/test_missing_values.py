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


def scaled(*nodes, dtype=TensorProto.FLOAT, kind=np.float32, **constants) -> bytes:
    """Return a model of three columns, whose logits are four times what the nodes make of `x`."""
    constants |= {"scale": [4.0] * 3}
    last = node("Mul", ["whole" if nodes else "x", "scale"], ["logits"])
    return make_model(
        [*nodes, last],
        inputs=[value("x", ("N", 3), dtype)],
        outputs=[value("logits", ("N", 3), dtype)],
        initializers=[constant(name, values, kind) for name, values in constants.items()],
    ).SerializeToString()


def imputing(**options) -> bytes:
    """Return a model that fills missing values in, as an exported SimpleImputer does."""
    nodes = [
        node("IsNaN", ["x"], ["missing"]),
        node("Where", ["missing", "filled", "x"], ["whole"]),
    ]
    return scaled(*nodes, filled=FILLED, **options)


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
    parts = {"model": imputing(), "calibration": csv_of(TABLE, LABELS)}
    return calibrated(client, {"name": "gappy"}, **parts)


def expected_classes(rows: pd.DataFrame) -> list[int]:
    return rows.fillna(dict(zip(NAMES, FILLED, strict=True))).to_numpy().argmax(axis=1).tolist()


def written(rows: pd.DataFrame, orient: str) -> list:
    return json.loads(rows.to_json(orient=orient, double_precision=15))


FORMATS = {
    "rows of JSON": lambda rows, name: (
        {"calibration": name, "inputs": written(rows, "values")},
        JSON,
    ),
    "rows by name": lambda rows, name: (
        {"calibration": name, "inputs": written(rows, "records")},
        JSON,
    ),
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


def classes_and_flags(predicted: list[dict]) -> tuple[list[int], list[bool]]:
    return [row["class"] for row in predicted], [row[FLAG] for row in predicted]


def test_every_format_answers_rows_that_lack_values(client, gappy) -> None:
    for kind in FORMATS:
        classes, marked = classes_and_flags(predictions(client, kind, ROWS, "gappy"))
        assert classes == expected_classes(ROWS), kind
        assert sum(marked) < len(marked) / 10
    rows = ROWS.to_numpy()
    wanted = {"outputs": [{"name": "class"}]}
    binary = {"inputs": [in_bytes("x", rows)], **wanted}
    arrays = outputs_of(infer(client, "gappy", binary, rows.tobytes()))
    assert arrays["class"].tolist() == expected_classes(ROWS)
    tensor = {"name": "x", "datatype": "FP32", "shape": [60, 3], "data": written(ROWS, "values")}
    answer = infer(client, "gappy", {"inputs": [tensor], **wanted})
    assert answer.json()["outputs"][0]["data"] == expected_classes(ROWS)


def test_columns_need_no_names(client) -> None:
    """The same samples as arrays, for a model of float64."""
    model = imputing(dtype=TensorProto.DOUBLE, kind=np.float64)
    archive = npz(x=TABLE.to_numpy(np.float64), labels=LABELS)
    calibrated(client, {"name": "nameless"}, model=model, calibration=archive)
    for kind in ("rows of JSON", "arrays"):
        classes, _ = classes_and_flags(predictions(client, kind, ROWS, "nameless"))
        assert classes == expected_classes(ROWS)
        _, marked = classes_and_flags(predictions(client, kind, LACKS_AGE, "nameless"))
        assert all(np.array(marked)[LACKS_AGE.age.isna()])


def test_the_client(client, gappy) -> None:
    own, expected = Client(http=client), expected_classes(ROWS)
    rows = [ROWS, ROWS.to_numpy(), ROWS.to_dict(orient="records"), written(ROWS, "records")]
    for form in rows:
        assert own.predict("gappy", form).class_.tolist() == expected


def test_a_value_that_is_never_missing_marks_the_row(client, gappy) -> None:
    """In the service and in the exported file alike."""
    classes, marked = classes_and_flags(predictions(client, "CSV", LACKS_AGE, "gappy"))
    assert classes == expected_classes(LACKS_AGE)
    assert all(np.array(marked)[LACKS_AGE.age.isna()])
    assert sum(marked) < LACKS_AGE.age.isna().sum() + 6
    content = client.get("/calibrations/gappy/model.onnx").raise_for_status().content
    session = onnxruntime.InferenceSession(content)
    for rows in (LACKS_AGE, ROWS, ROWS * np.nan, ROWS * 100, ROWS - 10):
        answers = session.run(["class", FLAG], {"x": rows.to_numpy()})
        own = classes_and_flags(predictions(client, "CSV", rows, "gappy"))
        assert tuple(array.tolist() for array in answers) == own


def test_the_calibration_says_how_many_samples_lack_a_value(gappy) -> None:
    share = float(TABLE.income.isna().mean())
    (ranges,) = gappy["data"]["column_ranges"].values()
    assert ranges["missing"] == [0.0, share, 0.0]
    np.testing.assert_allclose(ranges["least"], TABLE.min(), rtol=1e-6)
    np.testing.assert_allclose(ranges["most"], TABLE.max(), rtol=1e-6)
    assert any(f"`income` {100 * share:.1f} %" in warning for warning in gappy["warnings"])


def test_the_bin_tables_keep_it(client, gappy) -> None:
    document = client.get("/calibrations/gappy/bins").raise_for_status().json()
    imported = client.post("/calibrations/import", params={"name": "gappy-again"}, json=document)
    assert imported.status_code == httpx.codes.CREATED, imported.text
    classes, _ = classes_and_flags(predictions(client, "CSV", ROWS, "gappy-again"))
    assert classes == expected_classes(ROWS)


def test_rows_are_refused_where_no_sample_lacked_a_value(client) -> None:
    table = csv_of(TABLE.fillna(0.25), LABELS)
    calibrated(client, {"name": "complete"}, model=imputing(), calibration=table)
    first = int(np.flatnonzero(ROWS.income.isna())[0])
    for kind, write in FORMATS.items():
        body, headers = write(ROWS, "complete")
        answer = send(client, "complete", body, headers)
        assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, answer.text
        (violation,) = answer.json()["errors"]
        place = ".income" if kind == "rows by name" else "[1]"
        assert violation["location"] == f"inputs[{first}]{place}"
        assert "missing value" in violation["message"]


def test_nan_in_json_is_told_to_be_null(client, gappy) -> None:
    body = b'{"calibration": "gappy", "inputs": [{"age": 1, "income": NaN, "depth": 2}]}'
    answer = send(client, "gappy", body, JSON)
    assert answer.status_code == httpx.codes.BAD_REQUEST
    for word in ("NaN", "`income`", "null"):
        assert word in answer.text


def test_booleans_by_name_count_as_in_a_table(client, gappy) -> None:
    row = {"age": True, "income": 0.5, "depth": False}
    body = {"calibration": "gappy", "inputs": [row]}
    (prediction,) = send(client, "gappy", body, JSON).raise_for_status().json()["predictions"]
    assert prediction["class"] == 0


def test_a_model_that_does_not_handle_them_is_told_apart(client) -> None:
    parts = {"model": scaled(), "calibration": csv_of(TABLE, LABELS)}
    answer = calibrate(client, config=quick_config(name="none"), **parts).json()
    assert answer["status"] == "failed"
    (violation,) = answer["error"]["errors"]
    first = int(np.flatnonzero(TABLE.income.isna())[0])
    assert violation["location"] == f"calibration[{first}]"
    assert "missing values" in violation["message"]


def test_integers_cannot_be_missing(client) -> None:
    model = make_model(
        [node("Cast", ["x"], ["logits"], to=TensorProto.FLOAT)],
        inputs=[value("x", ("N", 3), TensorProto.INT64)],
        outputs=[value("logits", ("N", 3))],
    ).SerializeToString()
    table = (TABLE * 10).round().astype("Int64").assign(label=LABELS).to_parquet(index=False)
    answer = calibrate(client, config=quick_config(name="whole"), model=model, calibration=table)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, answer.text
    assert "int64" in answer.json()["errors"][0]["message"]


@pytest.mark.parametrize(("name", "lost"), [(None, 0), ("age", 30), ("income", 300)])
def test_a_column_lost_since_is_a_finding(client, gappy, name, lost) -> None:
    later, labels = with_gaps(300, 3)
    if name == "age":
        later = later.assign(age=later.age.where(later.index % 10 != 0))
    elif name == "income":
        later = later.assign(income=np.nan)
    answer = evaluate(client, "gappy", f"without-{name}", csv_of(later, labels)).json()
    findings = answer["result"]["findings"]
    if name is None:
        assert findings == []
        return
    (finding,) = findings
    assert finding["code"] == "inputs-out-of-range"
    assert f"`{name}` is empty in {lost} of 300" in str(finding)
