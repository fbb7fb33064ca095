"""A decision threshold: class 1 of two is predicted where the model's P(class 1) reaches it."""

import json

import httpx
import numpy as np
import onnxruntime
import pytest
from bins_documents import exported
from graph_models import constant, make_model, node, steps, value
from model_services import predictions
from onnx import TensorProto
from refusals import assert_refused
from running_service import JSON, calibrate, calibrated, evaluate, npz, refit
from scipy.special import expit

THRESHOLD = 0.2
RNG = np.random.default_rng(31)
ROWS = RNG.normal(size=(600, 3)).astype(np.float32)
WEIGHTS, BIAS = np.float32([[1.2], [-0.8], [0.5]]), np.float32([-1.6])
LOGIT = (ROWS @ WEIGHTS + BIAS)[:, 0].astype(np.float64)
LABELS = (RNG.random(600) < expit(LOGIT)).astype(int)
DECIDED = (expit(LOGIT) >= THRESHOLD).astype(int)
ACCURACY = float((DECIDED == LABELS).mean())
SET = npz(inputs=ROWS, labels=LABELS)
# From the logit z of class 1.
OUTPUTS = {
    "logits": (2, "n = Mul(z, zero); y = Concat<axis=1>(n, z)"),
    "probabilities": (2, "s = Sigmoid(z); p = Clip(s); o = Sub(one, p); y = Concat<axis=1>(o, p)"),
    "one-sigmoid": (1, "y = Sigmoid(z)"),
    "raw-scores": (2, "y = Mul(z, signs)"),
}


def of_logit(text: str, *outputs, **numbers) -> bytes:
    """Return a model that computes its outputs from the logit z of class 1."""
    numbers = {"w": WEIGHTS, "b": BIAS} | numbers
    return make_model(
        steps(f"m = MatMul(x, w); z = Add(m, b); {text}"),
        inputs=[value("x", ("N", 3))],
        outputs=outputs,
        initializers=[constant(*pair) for pair in numbers.items()],
    ).SerializeToString()


def model(kind: str) -> bytes:
    n_columns, text = OUTPUTS[kind]
    return of_logit(text, value("y", ("N", n_columns)), zero=[0], one=[1], signs=[[-1, 1]])


def classes(found: list[dict]) -> list[int]:
    assert [row["classes"][0]["class"] for row in found] == [row["class"] for row in found]
    return [row["class"] for row in found]


@pytest.mark.parametrize("kind", OUTPUTS)
def test_every_answer_of_a_model_follows_from_it(client, kind) -> None:
    config = {"name": f"decides-{kind}", "decision_threshold": THRESHOLD}
    config["measures"] = ["learned" if kind == "logits" else "margin"]
    made = calibrated(client, config, model=model(kind), calibration=SET, evaluation=SET)
    assert made["accuracy"]["1"] == pytest.approx(ACCURACY)
    answered = predictions(client, made["name"], ROWS[:200])
    assert classes(answered) == DECIDED[:200].tolist()
    scores = [{one["class"]: one["score"] for one in row["classes"]}[1] for row in answered]
    np.testing.assert_allclose(scores, expit(LOGIT[:200]), rtol=1e-4)
    exact = client.get(f"/calibrations/{made['id']}/model.onnx").raise_for_status()
    assert "classes=0; bins=0" in exact.headers["Howsure-Parity"]
    session = onnxruntime.InferenceSession(exact.content)
    assert session.run(["class"], {"x": ROWS})[0].tolist() == DECIDED.tolist()
    further = evaluate(client, made["id"], "again", SET).json()["result"]
    assert further["events"]["1"]["accuracy"] == pytest.approx(ACCURACY)


def test_a_mean_of_several_models_follows_from_it(client) -> None:
    config = {"name": "decides-mean", "decision_threshold": THRESHOLD}
    models = [model("logits"), model("one-sigmoid")]
    config["measures"] = ["ensemble_variance", "margin"]
    shifted = [models[0], models[1].replace(BIAS.tobytes(), (BIAS + 1).tobytes())]
    made = calibrated(client, config, model=shifted, calibration=SET)
    decided = ((expit(LOGIT) + expit(LOGIT + 1)) / 2 >= THRESHOLD).astype(int)
    assert made["accuracy"]["1"] == pytest.approx(float((decided == LABELS).mean()))
    assert classes(predictions(client, "decides-mean", ROWS[:200])) == decided[:200].tolist()
    report = client.get("/report", params={"calibration": "decides-mean"}).json()
    passes = report["model_scores"]["calibration"]["passes"]["ensemble_variance"]
    assert passes[-1]["accuracy"]["1"] == pytest.approx(made["accuracy"]["1"])


def test_a_model_of_rare_events_is_not_warned_of(client) -> None:
    """Its labels are drawn from its probabilities; the remedy's threshold has the event named."""
    logit = RNG.normal(-4.0, 1.2, 4000)
    outputs = {"logits": np.stack([0 * logit, np.minimum(logit, -0.5)], axis=1)}
    part = npz(labels=(RNG.random(4000) < expit(outputs["logits"][:, 1])).astype(int), **outputs)
    config = {"name": "rare-events", "strict": True}
    (notice,) = calibrated(client, config, calibration=part)["findings"]
    assert (notice["code"], notice["level"]) == ("classes-not-predicted", "notice")
    assert notice["figures"]["largest"] == pytest.approx(expit(-0.5))
    summary = client.get("/report", params={"calibration": "rare-events"}).json()["summary"]
    assert summary["status"] != "warned"
    decided = config | {"decision_threshold": notice["figures"]["threshold"]}
    made = calibrated(client, decided, calibration=part)
    assert made["findings"] == []
    assert made["accuracy"]["1"] < 0.9


def outputs_of(kind: str) -> dict[str, np.ndarray]:
    """Return rows whose P(class 1) is a number of tenths, also the threshold exactly."""
    positive = (np.arange(600) % 9 + 1).astype(np.float32) / 10
    rows = np.stack([1 - positive, positive], axis=1)
    return {kind: np.log(rows) if kind == "logits" else rows}


@pytest.mark.parametrize(("kind", "threshold"), [("probabilities", 0.3), ("logits", 0.7)])
def test_uploaded_outputs_reach_it_where_they_equal_it(client, kind, threshold) -> None:
    outputs, name = outputs_of(kind), f"equal-{kind}-{threshold}"
    labels = RNG.integers(0, 2, 600)
    config = {"name": name, "decision_threshold": threshold}
    made = calibrated(client, config, calibration=npz(**outputs, labels=labels))
    decided = (np.arange(600) % 9 + 1 >= 10 * threshold - 1e-6).astype(int)
    assert made["accuracy"]["1"] == pytest.approx(float((decided == labels).mean()))
    body = {"calibration": name, kind: outputs[kind][:18].tolist()}
    answered = client.post("/predict", json=body).json()["predictions"]
    assert classes(answered) == decided[:18].tolist()
    assert refit(client, name, bins=3).json()["accuracy"] == made["accuracy"]
    copied = client.post(
        "/calibrations/import", content=json.dumps(exported(client, made["id"])), headers=JSON
    ).json()
    again = client.post("/predict", json={**body, "calibration": copied["id"]}).json()
    assert again["predictions"] == answered


def test_a_document_needs_a_model_that_decides_alike(client) -> None:
    config = {"name": "decides-here", "decision_threshold": 0.31, "bins": 2}
    part = {"model": model("one-sigmoid"), "calibration": SET}
    made = calibrated(client, config, **part)
    document = exported(client, made["id"])
    assert document["decision_threshold"] == 0.31
    client.delete(f"/calibrations/{made['id']}").raise_for_status()
    calibrated(client, {**config, "decision_threshold": None}, **part)
    answer = client.post("/calibrations/import", content=json.dumps(document), headers=JSON)
    assert_refused(answer, "document.decision_threshold", "another")


@pytest.mark.parametrize("tuned", [0.25, 0.03])
def test_a_tuned_threshold_of_the_label_output_is_found(client, tuned) -> None:
    """Also where most labels differ from the more probable class."""
    text = "y = Sigmoid(z); t = GreaterOrEqual(y, tuned); label = Cast<to=7>(t)"
    outputs = value("y", ("N", 1)), value("label", ("N", 1), TensorProto.INT64)
    part = {"model": of_logit(text, *outputs, tuned=[tuned]), "calibration": SET}
    config = {"name": f"labelled-{tuned}"}
    (notice,) = calibrated(client, config, **part)["findings"]
    assert (notice["code"], notice["level"]) == ("label-output-differs", "notice")
    own, ours = (expit(LOGIT[:256]) >= t for t in (tuned, 0.5))
    figures = notice["figures"]
    assert figures["label_share"] == pytest.approx(own.mean())
    assert figures["predicted_share"] == pytest.approx(ours.mean())
    assert figures["differing"] == pytest.approx((own != ours).mean())
    assert f"{100 * own.mean():.1f} %" in notice["message"]
    assert (expit(LOGIT[:256]) >= figures["threshold"]).tolist() == own.tolist()
    decided = config | {"decision_threshold": figures["threshold"]}
    assert calibrated(client, decided, **part)["findings"] == []


def test_labels_that_no_threshold_gives_are_told(client) -> None:
    classes = {"classlabels_ints": [0, 1, 2], "intercepts": [0.0] * 3, "domain": "ai.onnx.ml"}
    scores = np.float32(np.eye(3) + RNG.normal(0, [[[0.1]], [[0.5]]], (2, 3, 3)))
    nodes = [
        node("LinearClassifier", ["x"], names, coefficients=own.ravel().tolist(), **classes)
        for names, own in zip((["a", "y"], ["label", "b"]), scores, strict=True)
    ]
    outputs = value("y", ("N", 3)), value("label", ("N",), TensorProto.INT64)
    file = make_model(nodes, inputs=[value("x", ("N", 3))], outputs=outputs).SerializeToString()
    best = [(ROWS[:256] @ own.T).argmax(axis=1) for own in scores]
    differing = float((best[0] != best[1]).mean())
    part = npz(inputs=ROWS, labels=(ROWS @ scores[0].T).argmax(axis=1))
    made = calibrated(client, {"name": "other-labels"}, model=file, calibration=part)
    found = {one["code"]: one for one in made["findings"]}["label-output-differs"]
    assert 0 < differing < 0.5
    assert found["figures"] == {"samples": 256, "differing": pytest.approx(differing)}


def of_three(client: httpx.Client) -> httpx.Response:
    logits = RNG.normal(size=(60, 3)).astype(np.float32)
    part = npz(logits=logits, labels=np.arange(60) % 3)
    return calibrate(client, calibration=part, config='{"decision_threshold": 0.4}')


def of_pairs(client: httpx.Client) -> httpx.Response:
    part = npz(score=RNG.random(60), correct=np.arange(60) % 2)
    return calibrate(client, calibration=part, config='{"decision_threshold": 0.4}')


@pytest.mark.parametrize("upload", [of_three, of_pairs])
def test_other_sets_have_none(client, upload) -> None:
    assert_refused(upload(client), "config.decision_threshold", "leave it out")
