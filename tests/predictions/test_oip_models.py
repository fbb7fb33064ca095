"""Inputs, statistics and documented examples of the Open Inference Protocol."""

import io
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from oip_service import LENGTH, in_bytes, in_json, infer, oip_service_on, outputs_of
from onnx import TensorProto
from predict_bodies import npz
from runner_models import from_integers, linear, rows, softmax_of_two, weights
from running_service import DIGITS, calibrate, digits
from scipy.special import softmax
from uploads import QUICK, calibrated

from service.predictions.oip_statistics import Statistics
from service.storage.calibration_queries import CalibrationRef

rng = np.random.default_rng(5)
LOGITS = (rng.normal(size=(300, 4)) * 3).astype(np.float32)
PROBABILITIES = softmax(LOGITS.astype(float), axis=1)
LABELS = np.array([rng.choice(4, p=p) for p in PROBABILITIES])
OWN = rng.random(300).astype(np.float32)


def made(client, name: str, config: dict | None = None, model=None, **arrays) -> None:
    calibrated(
        client,
        QUICK | {"name": name, "top_k": [1, 2], **(config or {})},
        model=None if model is None else model.SerializeToString(),
        calibration=npz(**arrays),
    )


def declared(client, name: str) -> list[tuple[str, str, list[int]]]:
    tensors = client.get(f"/v2/models/{name}").json()["inputs"]
    return [(tensor["name"], tensor["datatype"], tensor["shape"]) for tensor in tensors]


def predicted(client, name: str, **body) -> list[dict]:
    answer = client.post("/predict", json={"calibration": name, **body})
    return answer.json()["predictions"]


def same(outputs: dict[str, np.ndarray], predictions: list[dict]) -> None:
    assert outputs["class"].tolist() == [one["class"] for one in predictions]
    for event in (key for key in predictions[0] if key.startswith("top")):
        expected = np.array([one[event]["probability"] for one in predictions], np.float32)
        assert np.array_equal(outputs[f"{event}_probability"], expected)
        assert outputs[f"{event}_bin"].tolist() == [one[event]["bin"] for one in predictions]


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_outputs_of_a_model_that_runs_elsewhere(client, kind: str) -> None:
    scores = {"logits": LOGITS, "probabilities": PROBABILITIES}[kind]
    made(client, kind, **{kind: scores}, labels=LABELS)
    description = client.get(f"/v2/models/{kind}").json()

    assert declared(client, kind) == [(kind, "FP32", [-1, 4])]
    assert description["platform"] == "howsure"
    expected = predicted(client, kind, **{kind: scores[:9].tolist()})
    wide = scores[:9].astype(np.float64)
    by_json = infer(client, kind, {"inputs": [in_json(kind, wide, "FP64")]})
    same(outputs_of(by_json), expected)
    by_bytes = infer(client, kind, {"inputs": [in_bytes(kind, wide, "FP64")]}, wide.tobytes())
    same(outputs_of(by_bytes), expected)


def test_supplied_uncertainties_are_inputs(client) -> None:
    config = {"top_k": [1], "measures": ["supplied:own"], "serve": {"1": "supplied:own"}}
    made(client, "supplied", config, logits=LOGITS, labels=LABELS, uncertainty_own=OWN)
    expected = predicted(
        client, "supplied", logits=LOGITS[:9].tolist(), supplied={"own": OWN[:9].tolist()}
    )
    scores, own = in_bytes("logits", LOGITS[:9]), in_json("uncertainty_own", OWN[:9])

    assert declared(client, "supplied") == [
        ("logits", "FP32", [-1, 4]),
        ("uncertainty_own", "FP32", [-1]),
    ]
    answer = infer(client, "supplied", {"inputs": [own, scores]}, LOGITS[:9].tobytes())
    same(outputs_of(answer), expected)
    missing = infer(client, "supplied", {"inputs": [scores]}, LOGITS[:9].tobytes())
    assert missing.status_code == 400
    assert "supplied.own" in missing.json()["error"]


def test_several_inputs_in_any_order_and_mixed(client) -> None:
    matrix = weights()
    left, right = rows(400, seed=3), rows(400, seed=4)
    labels = ((left + right) @ matrix).argmax(1)
    made(client, "two", {}, softmax_of_two(matrix), left=left, right=right, labels=labels)
    ours = {"left": left[:7], "right": right[:7]}
    expected = predicted(
        client, "two", inputs={name: values.tolist() for name, values in ours.items()}
    )

    assert [name for name, _, _ in declared(client, "two")] == ["left", "right"]
    for request, raw in (
        ([in_json("right", ours["right"]), in_bytes("left", ours["left"])], ["left"]),
        ([in_bytes("left", ours["left"]), in_json("right", ours["right"])], ["left"]),
        ([in_bytes("right", ours["right"]), in_bytes("left", ours["left"])], ["right", "left"]),
    ):
        answer = infer(client, "two", {"inputs": request}, *(ours[name].tobytes() for name in raw))
        same(outputs_of(answer), expected)
    whole = client.post("/v2/models/two/infer", content=left[:1].tobytes(), headers={LENGTH: "0"})
    assert whole.status_code == 400
    assert "left, right" in whole.json()["error"]
    fewer = [in_json("left", left[:3]), in_json("right", right[:4])]
    assert infer(client, "two", {"inputs": fewer}).status_code == 400


def test_integers(client) -> None:
    matrix = weights()
    pixels = rng.integers(0, 256, (400, len(matrix))).astype(np.uint8)
    labels = (pixels @ matrix).argmax(1)
    made(client, "bytes", {}, from_integers(matrix), inputs=pixels, labels=labels)
    expected = predicted(client, "bytes", inputs=pixels[:5].tolist())
    name, datatype, shape = declared(client, "bytes")[0]

    assert (datatype, shape[0]) == ("UINT8", -1)
    for kind, dtype in (("UINT8", np.uint8), ("INT64", np.int64), ("FP32", np.float32)):
        values = pixels[:5].astype(dtype)
        same(
            outputs_of(infer(client, "bytes", {"inputs": [in_json(name, values, kind)]})), expected
        )
        request = {"inputs": [in_bytes(name, values, kind)]}
        same(outputs_of(infer(client, "bytes", request, values.tobytes())), expected)
    whole = client.post(
        "/v2/models/bytes/infer", content=pixels[3].tobytes(), headers={LENGTH: "0"}
    )
    same(outputs_of(whole), expected[3:4])
    beyond = infer(client, "bytes", {"inputs": [in_json(name, values + 256, "FP32")]})
    assert beyond.status_code == 400
    assert "from 0 to 255" in beyond.json()["error"]


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_floats_of_other_widths(client, kind: int) -> None:
    dtype, datatype = {
        TensorProto.FLOAT16: (np.float16, "FP16"),
        TensorProto.DOUBLE: (np.float64, "FP64"),
    }[kind]
    matrix = weights().astype(dtype)
    inputs = rows(400).astype(dtype)
    labels = (inputs.astype(float) @ matrix.astype(float)).argmax(1)
    model = linear(matrix, batch=4, element_type=kind, dtype=dtype)
    made(client, datatype.lower(), {}, model, inputs=inputs, labels=labels)
    expected = predicted(client, datatype.lower(), inputs=inputs[:5].astype(float).tolist())
    name, *found = declared(client, datatype.lower())[0]

    assert found == [datatype, [-1, inputs.shape[1]]], "batches of 4 are the service's own affair"
    request = {"inputs": [in_bytes(name, inputs[:5], datatype)]}
    same(outputs_of(infer(client, datatype.lower(), request, inputs[:5].tobytes())), expected)
    whole = client.post(
        f"/v2/models/{datatype.lower()}/infer", content=inputs[4].tobytes(), headers={LENGTH: "0"}
    )
    same(outputs_of(whole), expected[4:])


def ref(version: int) -> CalibrationRef:
    return CalibrationRef(uuid.uuid5(uuid.NAMESPACE_OID, str(version)), "digits", version)


def test_nothing_is_lost_between_threads() -> None:
    statistics = Statistics()

    def count(number: int) -> None:
        statistics.succeeded(ref(number % 2), requests=1, rows=3, waited=2e-6, ran=3e-6)
        statistics.failed(ref(1), seconds=5e-6)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(2000)))

    found = statistics.of(ref(1))
    assert (found.inference_count, found.execution_count) == (3000, 1000)
    assert found.inference_stats["success"] == {"count": 1000, "ns": 5_000_000}
    assert found.inference_stats["queue"] == {"count": 1000, "ns": 2_000_000}
    assert found.inference_stats["compute_infer"] == {"count": 1000, "ns": 3_000_000}
    assert found.inference_stats["fail"] == {"count": 2000, "ns": 10_000_000}
    assert found.last_inference > 0


def test_what_was_asked_longest_ago_is_forgotten() -> None:
    statistics = Statistics(size=2)
    for version in (1, 2, 1, 3):
        statistics.succeeded(ref(version), requests=1, rows=1, waited=0.0, ran=0.0)

    counts = [statistics.of(ref(version)).inference_count for version in (1, 2, 3, 4)]
    assert counts == [2, 0, 1, 0]
    assert statistics.of(ref(4)).last_inference == 0


PAGE = (Path(__file__).parents[2] / "docs" / "oip.md").read_text(encoding="utf-8")


def test_the_examples_run(tmp_path, monkeypatch) -> None:
    example = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(DIGITS)
    row = np.load(DIGITS / "evaluation.npz")["inputs"][0].astype(np.float32)
    with oip_service_on(tmp_path) as (client, address):
        parts = {"model": digits("model.onnx"), "calibration": digits("calibration.npz")}
        calibrate(client, **parts, config='{"name": "digits"}').raise_for_status()
        said = io.StringIO()
        with redirect_stdout(said):
            exec(example[1].replace("localhost:8000", address))  # noqa: S102 - our own page
        raw = client.post("/v2/models/digits/infer", content=row.tobytes(), headers={LENGTH: "0"})
        names = [one["name"] for one in client.get("/v2/models/digits").json()["outputs"]]

    classes, probabilities, abstain = said.getvalue().splitlines()
    found = outputs_of(raw)
    assert str(found["class"][0]) in classes
    assert len(probabilities.split()) >= 3
    assert {"True", "False"} & set(re.findall(r"\w+", abstain))
    table = set(re.findall(r"`(\w[\w.]*)`", "".join(re.findall(r"^\| `.*?\|", PAGE, re.MULTILINE))))
    assert {n for n in names if n[:4] != "top5" and n != "abstain_0.01"} == table - {
        "top5_probability"
    }


def test_every_status_of_the_page_is_declared(client) -> None:
    listed = set(re.findall(r"^\| (\d{3}) \|", PAGE, re.MULTILINE))
    document = client.get("/openapi.json").json()

    declared = {
        status
        for path, operations in document["paths"].items()
        if path.startswith("/v2")
        for operation in operations.values()
        for status, found in operation["responses"].items()
        if "OipError" in str(found)
    }
    assert listed - {"405"} == declared
