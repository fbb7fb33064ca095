"""Missing values: read in every format where the calibration set has them, else refused."""

import json

import httpx
import numpy as np
import onnxruntime
import pandas as pd
import pytest
from graph_models import node, steps
from onnx import TensorProto
from refusals import assert_refused
from request_formats import in_bytes, infer, outputs_of
from runner_models import from_integers, of_rows
from running_service import (
    JSON,
    NPZ,
    calibrate,
    calibrated,
    evaluate,
    npz,
    quick_config,
    refit,
    send,
)

from howsure.client import Client

NAMES = ["age", "income", "depth"]
FILLED = [0.5, 0.25, 0.75]
# Fills missing values in, as an exported SimpleImputer does.
IMPUTING = "m = IsNaN(x); whole = Where(m, filled, x); y = Mul(whole, scale)"
MODEL = of_rows(*steps(IMPUTING), shape=("N", 3), filled=FILLED, scale=[4.0] * 3)
MODEL = MODEL.SerializeToString()
UNPROCESSABLE = httpx.codes.UNPROCESSABLE_ENTITY


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
FIRST_GAP = int(np.flatnonzero(ROWS.income.isna())[0])


def csv_of(frame: pd.DataFrame, labels: np.ndarray | None = None) -> bytes:
    frame = frame if labels is None else frame.assign(label=labels)
    return frame.to_csv(index=False).encode()


@pytest.fixture(scope="module")
def gappy(client: httpx.Client) -> dict:
    return calibrated(client, {"name": "gappy"}, model=MODEL, calibration=csv_of(TABLE, LABELS))


def expected_classes(rows: pd.DataFrame) -> list[int]:
    return rows.fillna(dict(zip(NAMES, FILLED, strict=True))).to_numpy().argmax(axis=1).tolist()


def written(rows: pd.DataFrame, orient: str) -> list:
    return json.loads(rows.to_json(orient=orient, double_precision=15))


PARQUET = {"Content-Type": "application/vnd.apache.parquet"}


def as_json(rows: pd.DataFrame, name: str, orient: str) -> tuple[dict, dict]:
    return {"calibration": name, "inputs": written(rows, orient)}, JSON


# Each as a body and its headers; JSON names the calibration.
FORMATS = {
    "rows of JSON": lambda rows, name: as_json(rows, name, "values"),
    "rows by name": lambda rows, name: as_json(rows, name, "records"),
    "CSV": lambda rows, _: (csv_of(rows), {"Content-Type": "text/csv"}),
    "Parquet": lambda rows, _: (rows.to_parquet(index=False), PARQUET),
    "arrays": lambda rows, _: (npz(inputs=rows.to_numpy()), NPZ),
}


def classes_and_flags(
    client: httpx.Client, rows: pd.DataFrame, kind: str = "CSV", name: str = "gappy"
) -> tuple[list[int], list[bool]]:
    body, headers = FORMATS[kind](rows, name)
    answer = send(client, name, body, headers).raise_for_status().json()["predictions"]
    return [row["class"] for row in answer], [row["out_of_distribution"] for row in answer]


def test_every_format_answers_rows_that_lack_values(client, gappy) -> None:
    expected, array = expected_classes(ROWS), ROWS.to_numpy()
    for kind in FORMATS:
        classes, marked = classes_and_flags(client, ROWS, kind)
        assert classes == expected, kind
        assert sum(marked) < len(marked) / 10
    wanted = {"outputs": [{"name": "class"}]}
    in_json = {"name": "x", "datatype": "FP32", "shape": [60, 3], "data": written(ROWS, "values")}
    for tensor, *raw in ((in_bytes("x", array), array.tobytes()), (in_json,)):
        answer = outputs_of(infer(client, "gappy", {"inputs": [tensor], **wanted}, *raw))
        assert answer["class"].tolist() == expected
    own = Client(http=client)
    for rows in (ROWS, array, ROWS.to_dict(orient="records"), written(ROWS, "records")):
        assert own.predict("gappy", rows).class_.tolist() == expected


def test_a_value_that_is_never_missing_marks_the_row(client, gappy) -> None:
    """In the service and in the exported file alike."""
    classes, marked = classes_and_flags(client, LACKS_AGE)
    assert classes == expected_classes(LACKS_AGE)
    assert all(np.array(marked)[LACKS_AGE.age.isna()])
    assert sum(marked) < LACKS_AGE.age.isna().sum() + 6
    content = client.get("/calibrations/gappy/model.onnx").raise_for_status().content
    session = onnxruntime.InferenceSession(content)
    for rows, are_marked in (
        (LACKS_AGE, False),
        (ROWS, False),
        (ROWS * np.nan, True),
        (ROWS.assign(depth=ROWS.depth * 100 + 2), True),
        (ROWS - 10, True),
    ):
        answers = session.run(["class", "out_of_distribution"], {"x": rows.to_numpy()})
        assert tuple(array.tolist() for array in answers) == classes_and_flags(client, rows)
        assert all(answers[1]) == are_marked


def test_the_calibration_a_refit_and_an_import_keep_the_ranges_and_shares(client, gappy) -> None:
    share = float(TABLE.income.isna().mean())
    (ranges,) = gappy["data"]["column_ranges"].values()
    assert ranges["missing"] == [0.0, share, 0.0]
    np.testing.assert_allclose(ranges["least"], TABLE.min(), rtol=1e-6)
    np.testing.assert_allclose(ranges["most"], TABLE.max(), rtol=1e-6)
    assert any(f"`income` {100 * share:.1f} %" in warning for warning in gappy["warnings"])
    document = client.get("/calibrations/gappy/bins").raise_for_status().json()
    params = {"name": "gappy-again"}
    imported = client.post("/calibrations/import", params=params, json=document)
    for answer in (imported, refit(client, gappy["id"], bins=3)):
        again = answer.raise_for_status().json()
        for kind in ("input_ranges", "column_ranges"):
            assert again["data"][kind] == gappy["data"][kind]
        marked = classes_and_flags(client, LACKS_AGE, name=again["id"])
        assert marked == classes_and_flags(client, LACKS_AGE, name="gappy@1")


def test_rows_are_refused_where_no_sample_lacked_a_value(client) -> None:
    table = csv_of(TABLE.fillna(0.25), LABELS)
    calibrated(client, {"name": "complete"}, model=MODEL, calibration=table)
    for kind, write in FORMATS.items():
        body, headers = write(ROWS, "complete")
        answer = send(client, "complete", body, headers)
        assert answer.status_code == UNPROCESSABLE, answer.text
        (violation,) = answer.json()["errors"]
        place = ".income" if kind == "rows by name" else "[1]"
        assert violation["location"] == f"inputs[{FIRST_GAP}]{place}"
        assert "missing value" in violation["message"]


def test_nan_in_json_is_told_to_be_null_and_booleans_count_as_in_a_table(client, gappy) -> None:
    for value in ("NaN", "-Infinity"):
        body = f'{{"calibration": "gappy", "inputs": [{{"age": 1, "income": {value}}}]}}'
        answer = send(client, "gappy", body.encode(), JSON)
        assert_refused(answer, None, f"got {value} at `income`", "null", status=400)
    rows = pd.DataFrame([{"age": True, "income": 0.5, "depth": False}])
    assert classes_and_flags(client, rows, "rows by name")[0] == [0]


def test_models_that_do_not_handle_them_are_told_apart(client) -> None:
    model = of_rows(node("Mul", ["x", "scale"], ["y"]), shape=("N", 3), scale=[4.0] * 3)
    parts = {"model": model.SerializeToString(), "calibration": csv_of(TABLE, LABELS)}
    answer = calibrate(client, config=quick_config(name="no-rows-lost"), **parts).json()
    assert answer["status"] == "failed"
    (violation,) = answer["error"]["errors"]
    assert violation["location"] == f"calibration[{np.flatnonzero(TABLE.income.isna())[0]}]"
    assert "missing values" in violation["message"]
    of_integers = from_integers(np.eye(3), TensorProto.INT64).SerializeToString()
    table = (TABLE * 10).round().astype("Int64").assign(label=LABELS).to_parquet(index=False)
    answer = calibrate(client, config=quick_config(), model=of_integers, calibration=table)
    assert answer.status_code == UNPROCESSABLE, answer.text
    assert "int64" in answer.json()["errors"][0]["message"]


LATER, LATER_LABELS = with_gaps(300, 3)
# The column, its values in a further set, and a figure that its finding names.
CHANGED = {
    "lost in a tenth": ("age", LATER.age.where(LATER.index % 10 > 0), "30 of 300"),
    "lost": ("income", np.nan, "300 of 300"),
    "in another unit": ("depth", LATER.depth * 100, ""),
}


@pytest.mark.parametrize("case", CHANGED)
def test_a_column_that_changed_since_is_a_finding(client, gappy, case) -> None:
    name, values, figure = CHANGED[case]
    content = csv_of(LATER.assign(**{name: values}), LATER_LABELS)
    answer = evaluate(client, "gappy", case, content).json()
    (finding,) = answer["result"]["findings"]
    assert (finding["code"], finding["level"]) == ("inputs-out-of-range", "warning")
    assert f"`{name}`" in finding["message"]
    assert figure in finding["message"]
