"""Rows on another scale are marked in every form of answer, and in the exported file."""

import io
from typing import Any

import httpx
import numpy as np
import onnxruntime
import pandas as pd
from bins_documents import answers, digits_set
from graph_models import constant, make_model, steps, value
from onnx import TensorProto
from request_formats import in_bytes, infer, outputs_of
from running_service import NPZ, calibrated, npz, send

FLAG = "out_of_distribution"
ALIKE = digits_set()["inputs"][:40].astype(np.float32)
UNLIKE = {
    "a larger scale": ALIKE * 255,
    "a smaller scale": ALIKE / 255,
    "negative": ALIKE - 16,
    "from -16 to 16": ALIKE * 2 - 16,
    "one colour": np.full_like(ALIKE, 5),
}


def flags(client: httpx.Client, rows: Any, name: str = "digits") -> list[bool]:
    inputs = rows.tolist() if isinstance(rows, np.ndarray) else rows
    return [row[FLAG] for row in answers(client, name, inputs=inputs)]


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
    (tensor,) = (described.name for described in session.get_inputs())
    assert sum(marked(client, "digits", "inputs", ALIKE)) < len(ALIKE) / 4
    for case, rows in UNLIKE.items():
        assert all(marked(client, "digits", "inputs", rows)), case
        (alone,) = answers(client, "digits", inputs=rows[:1].tolist())
        assert alone[FLAG]
        # None where no threshold keeps to the risk.
        assert set(alone["abstain"].values()) - {None} == {True}
        flag, abstain = session.run([FLAG, "abstain"], {tensor: rows})
        assert all(flag)
        assert all(abstain)
    one_unlike = ALIKE.copy()
    one_unlike[3] *= 255
    expected = flags(client, ALIKE)
    assert session.run([FLAG], {tensor: ALIKE})[0].tolist() == expected
    assert flags(client, one_unlike) == [*expected[:3], True, *expected[4:]]


def test_columns_that_are_inputs_of_their_own_are_checked_integers_too(client) -> None:
    """As models are that were exported from data frames: an input for each column."""
    model = make_model(
        steps(
            "years = Cast<to = 1>(age); a = Mul(years, small); logits = Concat<axis = 1>(a, share)"
        ),
        inputs=[value("age", ("N", 1), TensorProto.INT64), value("share", ("N", 1))],
        outputs=[value("logits", ("N", 2))],
        initializers=[constant("small", [0.1])],
    )
    draw = np.random.default_rng(6)
    table = {"listing_id": np.arange(300), "age": draw.integers(18, 90, 300)}
    table |= {"share": draw.uniform(0, 1, 300), "left": draw.integers(0, 2, 300)}
    parts = {"model": model.SerializeToString(), "calibration": pd.DataFrame(table).to_parquet()}
    made = calibrated(client, {"name": "apart", "columns": {"label": ["left"]}}, **parts)
    # Single numbers have no spread within a row.
    assert not made["data"].get("input_ranges")
    assert any("`listing_id`" in text for text in made["warnings"])
    row = {"age": 40, "share": 0.5}
    rows = [row, row | {"age": 480}, row | {"share": 50.0}]
    assert flags(client, rows, "apart") == [False, True, True]
    feeds = {"age": np.array([[40], [480]]), "share": np.full((2, 1), 0.5, np.float32)}
    (flag,) = exported(client, "apart").run([FLAG], feeds)
    assert flag.tolist() == [False, True]
