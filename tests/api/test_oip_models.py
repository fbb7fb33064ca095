"""What calibrations of every kind take by the Open Inference Protocol."""

import json

import numpy as np
import pytest
from oip_service import LENGTH, in_bytes, in_json, infer, outputs_of
from onnx import TensorProto
from predict_bodies import npz
from runner_models import from_integers, linear, rows, softmax_of_two, weights
from running_service import calibrate
from scipy.special import softmax

rng = np.random.default_rng(5)
LOGITS = (rng.normal(size=(300, 4)) * 3).astype(np.float32)
PROBABILITIES = softmax(LOGITS.astype(float), axis=1)
LABELS = np.array([rng.choice(4, p=p) for p in PROBABILITIES])
OWN = rng.random(300).astype(np.float32)


def made(client, name: str, config: dict | None = None, model=None, **arrays) -> None:
    answer = calibrate(
        client,
        model=None if model is None else model.SerializeToString(),
        calibration=npz(**arrays),
        config=json.dumps({"name": name, "bins": 5, **(config or {})}),
    )
    assert answer.json()["status"] == "succeeded", answer.text


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
