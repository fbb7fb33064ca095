"""The same rows as .npy, .npz, base64 and JSON get the same answers, to the last bit."""

import io

import httpx
import numpy as np
import pytest
from dataset_files import npy_claim, npy_header
from json_schema import faults
from predict_bodies import NPY, NPZ, encoded, npy, npz, send
from runner_models import linear, rows, softmax_of_two, weights
from running_service import calibrate, digits
from scipy.special import softmax
from uploads import calibrated

PIXELS = np.load(io.BytesIO(digits("evaluation.npz")))["inputs"][:120]
rng = np.random.default_rng(5)
LOGITS = (rng.normal(size=(300, 4)) * 3).astype(np.float32)
LABELS = np.array([rng.choice(4, p=p) for p in softmax(LOGITS.astype(float), axis=1)])
OWN = rng.random(300).astype(np.float32)


def answered(answer: httpx.Response) -> dict:
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


def as_json(client: httpx.Client, **body) -> dict:
    return answered(client.post("/predict", json=body))


@pytest.fixture(scope="module")
def outputs(client) -> str:
    """Return a calibration of outputs whose Top-1 is answered by a supplied column."""
    config = {
        "name": "outputs",
        "top_k": [1, 2],
        "bins": 5,
        "measures": ["entropy", "supplied:own"],
        "serve": {"1": "supplied:own", "2": "entropy"},
    }
    probabilities = softmax(LOGITS.astype(float), axis=1)
    for name, arrays in {
        "outputs": {"logits": LOGITS},
        "distributions": {"probabilities": probabilities},
    }.items():
        calibrated(
            client,
            config | {"name": name},
            calibration=npz(**arrays, labels=LABELS, uncertainty_own=OWN),
        )
    return "outputs"


@pytest.fixture(scope="module")
def two_inputs(client) -> dict[str, np.ndarray]:
    """Calibrate a model of two inputs, and return rows for it."""
    matrix = weights()
    left, right = rows(400, seed=3), rows(400, seed=4)
    chances = softmax(((left + right) @ matrix).astype(float), axis=1)
    labels = np.array([rng.choice(10, p=p) for p in chances])
    calibrated(
        client,
        '{"name": "two", "bins": 5}',
        model=softmax_of_two(matrix).SerializeToString(),
        calibration=npz(left=left, right=right, labels=labels),
    )
    return {"left": left[:20], "right": right[:20]}


@pytest.mark.usefixtures("digits_calibration")
@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "int64", "float16", "float32", "float64", ">f4", ">i4"]
)
def test_npy_of_any_dtype(client, dtype: str) -> None:
    expected = as_json(client, calibration="digits", inputs=PIXELS.tolist())

    assert answered(send(client, "digits", npy(PIXELS.astype(dtype)), NPY)) == expected


@pytest.mark.usefixtures("digits_calibration")
def test_fractions_of_the_last_bit_in_every_form(client) -> None:
    pixels = PIXELS.astype(np.float32) + rng.random(PIXELS.shape).astype(np.float32)
    expected = as_json(client, calibration="digits", inputs=pixels.tolist())

    assert answered(send(client, "digits", npy(pixels), NPY)) == expected
    for compressed in (False, True):
        body = npz(compressed=compressed, inputs=pixels)
        assert answered(send(client, "digits@1", body, NPZ)) == expected
    assert as_json(client, calibration="digits", inputs=encoded(pixels)) == expected


def test_several_inputs_by_name(client, two_inputs) -> None:
    lists = {name: array.tolist() for name, array in two_inputs.items()}
    expected = as_json(client, calibration="two", inputs=lists)

    assert answered(send(client, "two", npz(**two_inputs), NPZ)) == expected
    mixed = {"left": encoded(two_inputs["left"]), "right": lists["right"]}
    assert as_json(client, calibration="two", inputs=mixed) == expected


@pytest.mark.parametrize(
    ("change", "place", "says"),
    [
        ({"right": None}, "inputs.right", "missing"),
        ({"right": rows(19)}, "inputs", "same number of rows"),
        ({"middle": rows(20)}, "inputs.middle", "left, right"),
        ({"left": None, "right": None, "inputs": rows(20)}, "inputs", "name them"),
        ({"right": np.full((20, 6), np.nan)}, "inputs.right[0][0]", "nan"),
    ],
)
def test_wrong_inputs_by_name(client, two_inputs, change: dict, place: str, says: str) -> None:
    sent = {name: a for name, a in (two_inputs | change).items() if a is not None}
    in_json = {"calibration": "two", "inputs": {name: encoded(a) for name, a in sent.items()}}

    for answer in (send(client, "two", npz(**sent), NPZ), client.post("/predict", json=in_json)):
        assert answer.status_code == 422, answer.text
        (violation,) = answer.json()["errors"]
        assert violation["location"] == place
        assert says in violation["message"]


@pytest.mark.usefixtures("digits_calibration")
def test_numbers_may_begin_anywhere_in_the_body(client) -> None:
    """numpy pads its headers so that numbers begin at multiples of 64; others need not."""
    pixels = np.concatenate([PIXELS] * 5).astype(np.float64)
    expected = as_json(client, calibration="digits", inputs=pixels.tolist())

    for odd in range(3):
        claim = npy_claim("<f8", pixels.shape, values=pixels.tobytes())
        header, values = claim[: -pixels.nbytes], claim[-pixels.nbytes :]
        text = header[10:] + b" " * odd
        body = npy_header(text) + values
        assert answered(send(client, "digits", body, NPY)) == expected


def test_the_only_input_may_be_called_inputs(client) -> None:
    matrix = weights(seed=2)
    pixels = rows(300, seed=8)
    calibrated(
        client,
        '{"name": "renamed", "bins": 3}',
        model=linear(matrix).SerializeToString(),
        calibration=npz(inputs=pixels, labels=(pixels @ matrix).argmax(axis=1)),
    )
    expected = as_json(client, calibration="renamed", inputs=pixels.tolist())

    for name in ("inputs", "x"):
        assert answered(send(client, "renamed", npz(**{name: pixels}), NPZ)) == expected
        assert as_json(client, calibration="renamed", inputs={name: pixels.tolist()}) == expected


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_outputs_with_a_supplied_column(client, outputs, kind: str) -> None:
    name = "outputs" if kind == "logits" else "distributions"
    scores = LOGITS if kind == "logits" else softmax(LOGITS, axis=1)
    lists = {"calibration": name, kind: scores.tolist(), "supplied": {"own": OWN.tolist()}}
    expected = as_json(client, **lists)

    body = npz(**{kind: scores}, uncertainty_own=OWN)
    assert answered(send(client, name, body, NPZ)) == expected
    bytes_of = {kind: encoded(scores), "supplied": {"own": encoded(OWN)}}
    assert as_json(client, **(lists | bytes_of)) == expected


def arrays_of(answer: httpx.Response) -> dict[str, np.ndarray]:
    assert answer.status_code == httpx.codes.OK, answer.text
    assert answer.headers["content-type"] == "application/x-npz"
    with np.load(io.BytesIO(answer.content), allow_pickle=False) as found:
        return dict(found)


def arrays_from(predictions: list[dict]) -> dict[str, np.ndarray]:
    """Return the documented arrays, built from the JSON alone."""

    def column(read, dtype=np.float32) -> np.ndarray:
        return np.array([read(prediction) for prediction in predictions], dtype)

    arrays = {
        "class": column(lambda p: p["class"], np.int64),
        "topk_class": column(lambda p: [c["class"] for c in p["classes"]], np.int64),
        "topk_score": column(lambda p: [c["score"] for c in p["classes"]]),
    }
    for event in [key for key in predictions[0] if key.startswith("top")]:
        arrays |= {
            f"{event}_probability": column(lambda p, e=event: p[e]["probability"]),
            f"{event}_lower": column(lambda p, e=event: p[e]["interval"][0]),
            f"{event}_upper": column(lambda p, e=event: p[e]["interval"][1]),
            f"{event}_uncertainty": column(lambda p, e=event: p[e]["uncertainty"]),
            f"{event}_bin": column(lambda p, e=event: p[e]["bin"], np.int64),
        }
    if "top1" in predictions[0]:
        risks = list(predictions[0]["abstain"])
        refused = {r: [p["abstain"][r] is not False for p in predictions] for r in risks}
        arrays["out_of_distribution"] = column(lambda p: p["out_of_distribution"], np.bool_)
        arrays["abstain"] = np.array(refused[risks[0]], np.bool_)
        arrays |= {f"abstain_{risk}": np.array(refused[risk], np.bool_) for risk in risks}
    return arrays


def check_arrays(found: dict[str, np.ndarray], predictions: list[dict]) -> None:
    expected = arrays_from(predictions)
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_answers_as_arrays(client, digits_calibration) -> None:
    accept = {"Accept": "application/x-npz"}
    expected = as_json(client, calibration="digits", inputs=PIXELS.tolist())["predictions"]
    body = {"calibration": "digits", "inputs": PIXELS.tolist()}

    for answer in (
        client.post("/predict", json=body, headers=accept),
        send(client, "digits", npy(PIXELS), NPY | accept),
    ):
        check_arrays(arrays_of(answer), expected)
        assert answer.headers["Howsure-Calibration"] == (
            f"id={digits_calibration['id']}; name=digits; version=1"
        )


def test_a_risk_without_threshold_lets_no_row_through(client, outputs) -> None:
    body = {"calibration": "outputs", "logits": LOGITS.tolist(), "supplied": {"own": OWN.tolist()}}
    expected = as_json(client, **body)["predictions"]
    assert expected[0]["abstain"]["0.01"] is None, "noise keeps to no risk"

    answer = client.post("/predict", json=body, headers={"Accept": "application/x-npz"})

    found = arrays_of(answer)
    assert found["abstain_0.01"].all()
    check_arrays(found, expected)


def test_without_top_1_there_are_no_flags(client) -> None:
    config = '{"name": "second", "top_k": [2], "bins": 4}'
    calibrate(client, calibration=npz(logits=LOGITS, labels=LABELS), config=config)
    body = {"calibration": "second", "logits": LOGITS[:9].tolist()}

    answer = client.post("/predict", json=body, headers={"Accept": "application/x-npz"})

    check_arrays(arrays_of(answer), as_json(client, **body)["predictions"])
    assert "abstain" not in arrays_of(answer)


@pytest.mark.usefixtures("digits_calibration")
def test_what_is_documented(client) -> None:
    document = client.get("/openapi.json").json()
    operation = document["paths"]["/predict"]["post"]

    for body in ([], PIXELS[:2].tolist(), encoded(PIXELS[:2]), {"inputs": encoded(PIXELS[:2])}):
        asked = {"calibration": "digits", "inputs": body}
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert faults(asked, schema, document) == []
    bodies = operation["requestBody"]["content"].keys()
    pictures = {"image/jpeg", "image/png", "image/webp", "multipart/form-data"}
    archives = {"application/zip", "application/x-tar"}
    tables = {"text/csv", "application/vnd.apache.parquet"}
    arrays = {"application/json", "application/x-npy", "application/x-npz"}
    assert bodies == arrays | pictures | archives | tables
    for media_type in bodies:
        answer = send(client, "digits", b"no such body", {"Content-Type": media_type})
        assert answer.status_code in (400, 422), "known, if it is not what it says"
    answers = operation["responses"]["200"]["content"].keys()
    assert answers == {"application/json", "application/x-npz"}
