"""Rows on another scale are marked in every form of answer, and in the exported file."""

import io

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from graph_models import constant, make_model, node, value
from onnx import TensorProto
from request_formats import in_bytes, infer, outputs_of
from running_service import NPZ, calibrated, digits, evaluate, npz, quick_config, refit, send

FLAG = "out_of_distribution"
ROWS = np.load(io.BytesIO(digits("evaluation.npz")))["inputs"].astype(np.float32)
ALIKE = ROWS[:40]
UNLIKE = {
    "a larger scale": ALIKE * 255,
    "a smaller scale": ALIKE / 255,
    "negative": ALIKE - 16,
    "from -16 to 16": ALIKE * 2 - 16,
    "one colour": np.full_like(ALIKE, 5),
}


def flags(client, rows, name="digits") -> list[bool]:
    answer = client.post("/predict", json={"calibration": name, "inputs": rows.tolist()})
    return [prediction[FLAG] for prediction in answer.raise_for_status().json()["predictions"]]


@pytest.mark.parametrize("n", [1, 40], ids=["one row", "many rows"])
@pytest.mark.parametrize("case", UNLIKE)
def test_rows_on_another_scale_are_marked(client, digits_calibration, case, n) -> None:
    rows = UNLIKE[case][:n].tolist()
    body = {"calibration": "digits", "inputs": rows}
    for found in client.post("/predict", json=body).raise_for_status().json()["predictions"]:
        assert found[FLAG]
        # None where no threshold keeps to the risk.
        assert {left for left in found["abstain"].values() if left is not None} == {True}


def test_a_marked_row_does_not_mark_others(client, digits_calibration) -> None:
    rows = ALIKE.copy()
    before = flags(client, rows)
    rows[3] *= 255
    assert flags(client, rows) == [*before[:3], True, *before[4:]]
    assert before.count(True) < len(before) / 4


def test_arrays_say_the_same(client, digits_calibration) -> None:
    for rows in (ALIKE, *UNLIKE.values()):
        expected = flags(client, rows)
        headers = {**NPZ, "Accept": NPZ["Content-Type"]}
        answer = send(client, "digits", npz(inputs=rows), headers).raise_for_status()
        arrays = np.load(io.BytesIO(answer.content))
        assert arrays[FLAG].tolist() == expected
        assert all(arrays["abstain"][arrays[FLAG]]) or rows is ALIKE
        asked = {"inputs": [in_bytes("inputs", rows)], "outputs": [{"name": FLAG}]}
        found = outputs_of(infer(client, "digits", asked, rows.tobytes()))
        assert found[FLAG].tolist() == expected


def test_the_file_says_the_same(client, digits_calibration) -> None:
    content = client.get("/calibrations/digits/model.onnx").raise_for_status().content
    session = onnxruntime.InferenceSession(content)
    for rows in (ALIKE, *UNLIKE.values()):
        feeds = {session.get_inputs()[0].name: rows}
        found, abstain = session.run([FLAG, "abstain"], feeds)
        assert found.tolist() == flags(client, rows)
        assert all(abstain[found]) or rows is ALIKE


def test_the_calibration_shows_the_numbers_and_a_refit_keeps_them(client, digits_calibration):
    calibration = np.load(io.BytesIO(digits("calibration.npz")))["inputs"].astype(int)
    spread = calibration.max(1) - calibration.min(1)
    expected = {"least": 0.0, "most": 16.0, "least_spread": float(spread.min())}
    found = client.get("/calibrations/digits").json()["data"]["input_ranges"]
    assert found == {"inputs": expected}
    again = refit(client, "digits", bins=5).raise_for_status().json()
    assert again["data"]["input_ranges"] == found
    name = f"digits@{again['version']}"
    assert flags(client, UNLIKE["a larger scale"], name) == [True] * 40
    client.delete(f"/calibrations/{name}").raise_for_status()


@pytest.fixture(scope="module")
def with_other_inputs(client) -> dict:
    """A model of float64 that adds integers and single numbers, times zero, to its scores."""
    double = TensorProto.DOUBLE
    model = make_model(
        [
            node("Cast", ["ids"], ["whole"], to=double),
            node("Add", ["whole", "single"], ["sum"]),
            node("Mul", ["sum", "zero"], ["nothing"]),
            node("Add", ["scores", "nothing"], ["logits"]),
        ],
        inputs=[
            value("scores", ("N", 3), double),
            value("ids", ("N", 3), TensorProto.INT64),
            value("single", ("N", 1), double),
        ],
        outputs=[value("logits", ("N", 3), double)],
        initializers=[constant("zero", [0.0], np.float64)],
    )
    draw = np.random.default_rng(0)
    return calibrated(
        client,
        quick_config(name="three"),
        model=model.SerializeToString(),
        calibration=npz(
            scores=draw.normal(size=(300, 3)),
            ids=draw.integers(0, 9, (300, 3)),
            single=draw.normal(size=(300, 1)),
            labels=draw.integers(0, 3, 300),
        ),
    )


def test_each_input_has_its_range_and_integers_and_single_numbers_none(
    client, with_other_inputs
) -> None:
    assert list(with_other_inputs["data"]["input_ranges"]) == ["scores"]
    row = {"scores": [[0.1, 0.2, 1.3]], "ids": [[1, 2, 3]], "single": [[0.5]]}

    def flag(**changes) -> bool:
        body = {"calibration": "three", "inputs": row | changes}
        (found,) = client.post("/predict", json=body).raise_for_status().json()["predictions"]
        return found[FLAG]

    assert not flag()
    assert not flag(ids=[[1000, 0, 0]], single=[[1000.0]])
    assert flag(scores=[[0.1, 0.2, 1000.0]])
    assert flag(scores=[[0.1, 0.2, 1e30]])


NAMES = ["share", "income", "depth"]
TABLE = np.random.default_rng(4).uniform([0, 100, -1], [1, 9000, -0.5], (400, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def of_table(client) -> dict:
    """A calibration of a table whose three columns have names."""
    model = make_model(
        [node("Mul", ["x", "scale"], ["logits"])],
        inputs=[value("x", ("N", 3))],
        outputs=[value("logits", ("N", 3))],
        initializers=[constant("scale", [2.0, 2e-4, -2.0])],
    )
    labels = np.random.default_rng(5).integers(0, 3, 400)
    file = io.BytesIO()
    columns = dict(zip(NAMES, TABLE.T, strict=True))
    pa_parquet.write_table(pa.table({**columns, "label": labels}), file)
    return calibrated(
        client,
        quick_config(name="table"),
        model=model.SerializeToString(),
        calibration=file.getvalue(),
    )


def test_a_column_in_another_unit_is_marked(client, of_table) -> None:
    (ranges,) = of_table["data"]["column_ranges"].values()
    assert ranges["least"] == TABLE.min(0).tolist()
    assert ranges["most"] == TABLE.max(0).tolist()
    row = dict(zip(NAMES, [0.5, 2000.0, -0.7], strict=True))

    def flag(**changes) -> bool:
        body = {"calibration": "table", "inputs": [row | changes] * 2}
        found = client.post("/predict", json=body).raise_for_status().json()["predictions"]
        return {one[FLAG] for one in found} == {True}

    assert not flag()
    assert flag(share=50.0)
    assert flag(depth=0.7)
    assert flag(income=-9000.0)
    assert not flag(share=1.9)


def test_arrays_and_the_file_mark_the_same_columns(client, of_table) -> None:
    rows = TABLE[:60].copy()
    rows[10:20, 0] *= 100
    rows[30:40, 2] *= -1
    expected = flags(client, rows, "table")
    assert (
        np.flatnonzero(expected).tolist()
        == np.flatnonzero(
            (rows[:, 0] > TABLE[:, 0].max() + np.ptp(TABLE[:, 0])) | (rows[:, 2] > 0)
        ).tolist()
    )
    headers = {**NPZ, "Accept": NPZ["Content-Type"]}
    answer = send(client, "table", npz(inputs=rows), headers).raise_for_status()
    assert np.load(io.BytesIO(answer.content))[FLAG].tolist() == expected
    content = client.get("/calibrations/table/model.onnx").raise_for_status().content
    (found,) = onnxruntime.InferenceSession(content).run([FLAG], {"x": rows})
    assert found.tolist() == expected


def test_an_import_marks_the_same_columns(client, of_table) -> None:
    document = client.get("/calibrations/table/bins").raise_for_status().json()
    assert document["data"]["column_ranges"] == of_table["data"]["column_ranges"]
    made = client.post("/calibrations/import", json=document, params={"name": "imported"})
    rows = TABLE[:20] * np.float32([100, 1, 1])
    name = made.raise_for_status().json()["id"]
    assert flags(client, rows, name) == flags(client, rows, "table")
    client.delete(f"/calibrations/{name}").raise_for_status()


def test_a_further_set_names_the_column(client, of_table) -> None:
    rows = TABLE * np.float32([100, 1, 1])
    sent = evaluate(client, "table", "percent", npz(inputs=rows)).json()
    (finding,) = sent["result"]["findings"]
    assert "in column `share`: most numbers are from 11.2756 to 90.48" in finding["message"]
    assert finding["level"] == "warning"


@pytest.mark.parametrize(("column", "factor"), [(0, 0.01), (1, 1 / 12), (1, 0.001)])
def test_a_further_set_in_a_smaller_unit_names_the_column(client, of_table, column, factor) -> None:
    """Each of its rows is in the range of the column."""
    rows = TABLE.copy()
    rows[:, column] *= factor
    name = f"smaller-{column}-{factor:g}"
    (finding,) = evaluate(client, "table", name, npz(inputs=rows)).json()["result"]["findings"]
    assert f"in column `{NAMES[column]}`: most numbers are from" in finding["message"]
    assert finding["level"] == "warning"
    assert finding["figures"]["rows"] > 200
    kept = evaluate(client, "table", f"{name}-kept", npz(inputs=TABLE)).json()["result"]
    assert not [one for one in kept["findings"] if one["code"] == finding["code"]]


@pytest.mark.parametrize(
    ("label", "others", "columns"),
    [
        ("label", (), {}),
        ("left", (), {"label": ["left"]}),
        ("left", ("listing_id",), {"label": ["left"]}),
        ("label", ("seen_on",), {"inputs": ["share", "age"]}),
    ],
)
def test_columns_that_are_inputs_of_their_own_are_checked_integers_too(
    client, label, others, columns
) -> None:
    """As models are that were exported from data frames: an input for each column."""
    model = make_model(
        [
            node("Cast", ["age"], ["years"], to=TensorProto.FLOAT),
            node("Mul", ["years", "small"], ["first"]),
            node("Concat", ["first", "share"], ["logits"], axis=1),
        ],
        inputs=[value("age", ("N", 1), TensorProto.INT64), value("share", ("N", 1))],
        outputs=[value("logits", ("N", 2))],
        initializers=[constant("small", [0.1])],
    )
    draw, file = np.random.default_rng(6), io.BytesIO()
    values = {"age": draw.integers(18, 90, 300), "share": draw.uniform(0, 1, 300)}
    more = {"listing_id": np.arange(300), "seen_on": ["2026-01-01"] * 300}
    values = {name: more[name] for name in others} | values
    pa_parquet.write_table(pa.table({**values, label: draw.integers(0, 2, 300)}), file)
    config = quick_config(name="apart", **({"columns": columns} if columns else {}))
    made = calibrated(client, config, model=model.SerializeToString(), calibration=file.getvalue())
    told = [text for text in made["warnings"] if "are not read: `listing_id`" in text]
    assert len(told) == others.count("listing_id")

    def flag(**row) -> bool:
        body = {"calibration": "apart", "inputs": [{"age": 40, "share": 0.5} | row]}
        (found,) = client.post("/predict", json=body).raise_for_status().json()["predictions"]
        return found[FLAG]

    assert not flag()
    assert flag(age=480)
    assert flag(share=50.0)
    content = client.get("/calibrations/apart/model.onnx").raise_for_status().content
    feeds = {"age": np.array([[40], [480]]), "share": np.full((2, 1), 0.5, np.float32)}
    (found,) = onnxruntime.InferenceSession(content).run([FLAG], feeds)
    assert found.tolist() == [False, True]
