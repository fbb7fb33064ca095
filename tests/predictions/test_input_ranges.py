"""Rows on another scale are marked in every form of answer, and in the exported file."""

import io
from typing import Any

import httpx
import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from graph_models import constant, make_model, node, value
from onnx import TensorProto
from request_formats import in_bytes, infer, outputs_of
from running_service import NPZ, calibrated, digits, evaluate, npz, refit, send

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


def predicted(client: httpx.Client, name: str, inputs: Any) -> list[dict]:
    answer = client.post("/predict", json={"calibration": name, "inputs": inputs})
    return answer.raise_for_status().json()["predictions"]


def flags(client: httpx.Client, rows: np.ndarray, name: str = "digits") -> list[bool]:
    return [row[FLAG] for row in predicted(client, name, rows.tolist())]


def exported(client: httpx.Client, name: str) -> onnxruntime.InferenceSession:
    content = client.get(f"/calibrations/{name}/model.onnx").raise_for_status().content
    return onnxruntime.InferenceSession(content)


def marked(client: httpx.Client, name: str, tensor: str, rows: np.ndarray) -> list[bool]:
    """Return the flags of rows, which all forms of answers share."""
    expected = flags(client, rows, name)
    headers = {**NPZ, "Accept": NPZ["Content-Type"]}
    answer = send(client, name, npz(inputs=rows), headers).raise_for_status()
    arrays = np.load(io.BytesIO(answer.content))
    assert arrays[FLAG].tolist() == expected
    assert all(arrays["abstain"][arrays[FLAG]])
    wanted = {"inputs": [in_bytes(tensor, rows)], "outputs": [{"name": FLAG}]}
    assert outputs_of(infer(client, name, wanted, rows.tobytes()))[FLAG].tolist() == expected
    return expected


def test_rows_on_another_scale_are_marked_in_each_form(client, digits_calibration) -> None:
    session = exported(client, "digits")
    (tensor,) = (found.name for found in session.get_inputs())
    assert sum(marked(client, "digits", "inputs", ALIKE)) < len(ALIKE) / 4
    for case, rows in UNLIKE.items():
        assert all(marked(client, "digits", "inputs", rows)), case
        (alone,) = predicted(client, "digits", rows[:1].tolist())
        assert alone[FLAG]
        # None where no threshold keeps to the risk.
        assert set(alone["abstain"].values()) - {None} == {True}
    for rows in (ALIKE, *UNLIKE.values()):
        flag, abstain = session.run([FLAG, "abstain"], {tensor: rows})
        assert flag.tolist() == flags(client, rows)
        assert all(abstain[flag])


def test_a_marked_row_does_not_mark_others(client, digits_calibration) -> None:
    rows = ALIKE.copy()
    before = flags(client, rows)
    rows[3] *= 255
    assert flags(client, rows) == [*before[:3], True, *before[4:]]


def test_the_calibration_shows_the_numbers(client, digits_calibration) -> None:
    calibration = np.load(io.BytesIO(digits("calibration.npz")))["inputs"].astype(int)
    spread = float((calibration.max(1) - calibration.min(1)).min())
    ranges = digits_calibration["data"]["input_ranges"]
    assert ranges == {"inputs": {"least": 0.0, "most": 16.0, "least_spread": spread}}


NAMES = ["share", "income", "depth"]
TABLE = np.random.default_rng(4).uniform([0, 100, -1], [1, 9000, -0.5], (400, 3)).astype(np.float32)
PERCENT = TABLE * np.float32([100, 1, 1])


def parquet(columns: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    pa_parquet.write_table(pa.table(columns), file)
    return file.getvalue()


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
    table = parquet({**dict(zip(NAMES, TABLE.T, strict=True)), "label": labels})
    config = {"name": "ranges"}
    return calibrated(client, config, model=model.SerializeToString(), calibration=table)


def test_a_column_in_another_unit_is_marked(client, of_table) -> None:
    (ranges,) = of_table["data"]["column_ranges"].values()
    assert ranges["least"] == TABLE.min(0).tolist()
    assert ranges["most"] == TABLE.max(0).tolist()
    row = dict(zip(NAMES, [0.5, 2000.0, -0.7], strict=True))
    for changes, is_marked in (
        ({}, False),
        ({"share": 50.0}, True),
        ({"depth": 0.7}, True),
        ({"income": -9000.0}, True),
        ({"share": 1.9}, False),
    ):
        found = predicted(client, "ranges", [row | changes] * 2)
        assert {one[FLAG] for one in found} == {is_marked}, changes


def test_arrays_and_the_file_mark_the_same_columns(client, of_table) -> None:
    rows = TABLE[:60].copy()
    rows[10:20, 0] *= 100
    rows[30:40, 2] *= -1
    expected = marked(client, "ranges", "x", rows)
    beyond = (rows[:, 0] > TABLE[:, 0].max() + np.ptp(TABLE[:, 0])) | (rows[:, 2] > 0)
    assert expected == beyond.tolist()
    (found,) = exported(client, "ranges").run([FLAG], {"x": rows})
    assert found.tolist() == expected


def test_a_refit_and_an_import_mark_the_same_columns(client, of_table) -> None:
    document = client.get("/calibrations/ranges/bins").raise_for_status().json()
    assert document["data"]["column_ranges"] == of_table["data"]["column_ranges"]
    imported = client.post("/calibrations/import", json=document, params={"name": "ranges-again"})
    refitted = refit(client, of_table["id"], bins=3)
    for answer in (imported, refitted):
        again = answer.raise_for_status().json()
        for kind in ("input_ranges", "column_ranges"):
            assert again["data"][kind] == of_table["data"][kind]
        assert flags(client, PERCENT[:20], again["id"]) == flags(client, PERCENT[:20], "ranges@1")


@pytest.mark.parametrize(("column", "factor"), [(0, 100), (1, 1 / 12)])
def test_a_further_set_names_the_column(client, of_table, column, factor) -> None:
    """In the smaller unit each of its rows is in the range of the column."""
    rows = TABLE.copy()
    rows[:, column] *= factor
    result = evaluate(client, "ranges@1", f"further-{column}", npz(inputs=rows)).json()["result"]
    (finding,) = result["findings"]
    assert f"`{NAMES[column]}`" in finding["message"]
    assert finding["level"] == "warning"
    assert finding["figures"]["rows"] > 200
    kept = evaluate(client, "ranges@1", f"kept-{column}", npz(inputs=TABLE)).json()["result"]
    assert finding["code"] not in [one["code"] for one in kept["findings"]]


@pytest.mark.parametrize(
    ("label", "others", "columns"),
    [
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
    draw = np.random.default_rng(6)
    more = {"listing_id": np.arange(300), "seen_on": ["2026-01-01"] * 300}
    table = {name: more[name] for name in others}
    table |= {"age": draw.integers(18, 90, 300), "share": draw.uniform(0, 1, 300)}
    table |= {label: draw.integers(0, 2, 300)}
    config = {"name": "apart", "columns": columns}
    parts = {"model": model.SerializeToString(), "calibration": parquet(table)}
    made = calibrated(client, config, **parts)
    # Single numbers have no spread within a row.
    assert not made["data"].get("input_ranges")
    unread = [text for text in made["warnings"] if "`listing_id`" in text]
    assert len(unread) == others.count("listing_id")
    row = {"age": 40, "share": 0.5}
    found = predicted(client, "apart", [row, row | {"age": 480}, row | {"share": 50.0}])
    assert [one[FLAG] for one in found] == [False, True, True]
    feeds = {"age": np.array([[40], [480]]), "share": np.full((2, 1), 0.5, np.float32)}
    (flag,) = exported(client, "apart").run([FLAG], feeds)
    assert flag.tolist() == [False, True]
