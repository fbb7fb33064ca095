"""Both clients do all that the service offers, from whatever form the data has."""

import json

import httpx
import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from plain_answers import assert_says
from running_service import DIGITS
from scripted_server import KINDS, client_of

from howsure.client import Calibration, Client, HowsureError

QUICK = {"measures": ["entropy"], "bins": 5, "folds": 2}


def arrays(part: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(DIGITS / f"{part}.npz") as archive:
        return archive["inputs"], archive["labels"]


@pytest.fixture(params=KINDS)
def client(request, url):
    with client_of(request.param, url) as made:
        yield made


def test_a_calibration_from_its_beginning_to_its_end(client, url, tmp_path) -> None:
    inputs, labels = arrays("calibration")
    told = []
    made = client.calibrate(
        DIGITS / "model.onnx",
        (inputs, labels),
        evaluation=DIGITS / "evaluation.npz",
        config={"name": "whole"},
        on_progress=told.append,
        **QUICK,
    )
    raw = httpx.get(f"{url}/calibrations/{made.id}").json()
    assert made == Calibration.of(raw)
    assert made.resource == raw
    assert (made.status, made.accuracy[1]) == ("succeeded", raw["accuracy"]["1"])
    assert made.resource["data"]["samples"] == len(labels)
    assert made.resource["data"]["evaluation_samples"] == 600
    assert told[0].status in {"queued", "running"}
    assert [entry.status for entry in told] == sorted(e.status for e in told)
    assert len(set(told)) == len(told)

    assert client.get(made.reference) == made
    assert made in client.calibrations(name="whole", status="succeeded")
    assert client.calibrations(name="whole", limit=1)[0].name == "whole"

    report = client.report(made)
    assert report == httpx.get(f"{url}/report", params={"calibration": made.id}).json()
    assert client.report_text(made).startswith("# whole@")
    assert client.report_text(made, "csv").splitlines()[0].count(",") > 2
    assert client.report_text(made, "model-card").startswith("---\n")
    assert client.report_text(made, "html").startswith("<!doctype html>")
    assert client.bins(made)["calibration"]["id"] == made.id

    judged = client.evaluate(made, {"inputs": inputs[:200]}, name="part/of it")
    assert (judged.labelled, judged.status) == (False, "succeeded")
    assert judged.shifted is judged.result["shifted"]
    assert judged.sentence in json.dumps(judged.result)

    refitted = client.refit(made, bins=7)
    assert refitted.resource["config"]["bins"] == 7
    assert refitted.version == made.version + 1
    assert client.promote(made).promoted

    exported = client.export(made, tmp_path / "calibrated.onnx")
    outputs = onnxruntime.InferenceSession(exported).run(
        ["class"], {"inputs": inputs[:9].astype(np.float32)}
    )
    assert outputs[0].tolist() == client.predict(made, inputs[:9]).class_.tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["calibrated.onnx"]

    assert client.delete(refitted) is None
    with pytest.raises(HowsureError) as refused:
        client.get(refitted)
    assert refused.value.status == 404


def test_predictions_are_those_of_the_service(client, url, digits) -> None:
    inputs, _ = arrays("evaluation")
    found = client.predict(digits, inputs[:300], rows_per_request=128)
    body = {"calibration": digits, "inputs": inputs[:300].tolist()}
    answer = httpx.post(f"{url}/predict", json=body).json()
    expected = answer["predictions"]
    assert len(found) == len(expected) == 300
    assert (found.calibration_id, found.reference) == (answer["calibration"]["id"], digits)
    assert_says(found.arrays, expected)
    assert found.class_ is found["class"]
    assert found.label == [row["label"] for row in expected]
    for name in ("topk_class", "topk_score", "out_of_distribution"):
        assert getattr(found, name) is found[name]
    assert set(found.events) == {1, 5}
    for name, event in (("top1", found.top1), ("top5", found.top5)):
        assert all(values is found[f"{name}_{part}"] for part, values in vars(event).items())
    assert set(found.abstain) == set(expected[0]["abstain"])
    assert all(flags is found[f"abstain_{risk}"] for risk, flags in found.abstain.items())


def outputs_of(inputs: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(DIGITS / "model.onnx")
    return session.run(None, {"inputs": inputs.astype(np.float32)})[0]


def test_a_dry_run_tells_what_would_be_and_keeps_nothing(client, url) -> None:
    before = httpx.get(f"{url}/calibrations").json()
    parts = DIGITS / "model.onnx", arrays("calibration")
    told = client.dry_run(*parts, name="dry", **QUICK)
    assert (told["config"]["name"], told["cost"]["samples"], told["findings"]) == ("dry", 600, [])
    assert httpx.get(f"{url}/calibrations").json() == before


def test_what_was_found_comes_with_a_calibration(client) -> None:
    inputs, labels = arrays("calibration")
    made = client.calibrate(
        DIGITS / "model.onnx", (inputs, (labels + 1) % 10), name="moved", **QUICK
    )
    found = next(finding for finding in made.findings if finding.code == "labels-shifted")
    assert found.level == "warning"
    assert found.figures["offset"] == -1
    assert "-1 added to every label" in found.message


def test_outputs_in_the_place_of_a_model(url) -> None:
    inputs, labels = arrays("calibration")
    logits = outputs_of(inputs)
    with Client(url) as client:
        made = client.calibrate(logits=logits, labels=labels, name="outputs", **QUICK)
        found = client.predict(made, logits=logits[:5])
    assert made.resource["data"]["kind"] == "logits"
    assert found.class_.tolist() == logits[:5].argmax(axis=1).tolist()


FORMS = ["bytes", "file", "memory", "names", "ensemble", "labels beside", "external weights"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_model_and_a_set_gives_the_same(form, url, digits, tmp_path) -> None:
    model, samples = DIGITS / "model.onnx", DIGITS / "calibration.npz"
    inputs, labels = arrays("calibration")
    np.save(tmp_path / "inputs.npy", inputs)
    folder = DIGITS.parents[1] / "tests" / "data" / "digits"
    weights = {"model_external.onnx.data": (folder / "model_external.onnx.data").read_bytes()}
    with Client(url) as client, model.open("rb") as open_model, samples.open("rb") as open_set:
        open_set.read(5)  # whatever was read before
        given, options = {
            "bytes": ((model.read_bytes(), samples.read_bytes()), {}),
            "file": ((open_model, open_set), {}),
            "memory": ((onnx.load(model), (inputs.tolist(), labels.tolist())), {}),
            "names": ((str(model), {"inputs": inputs, "labels": labels}), {}),
            "ensemble": (([model, model.read_bytes()], samples), {}),
            "labels beside": ((model, tmp_path / "inputs.npy"), {"labels": labels}),
            "external weights": (
                (folder / "model_external.onnx", samples),
                {"model_data": weights},
            ),
        }[form]
        made = client.calibrate(*given, name=form.replace(" ", "-"), **options, **QUICK)
        reference = client.get(digits)
    assert made.accuracy == reference.accuracy
    assert made.resource["data"]["class_counts"] == reference.resource["data"]["class_counts"]
    assert len(made.resource["model"]["members"]) == (2 if form == "ensemble" else 0)


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("calibrate", {}, "calibration set"),
        ("calibrate", {"logits": [[1.0, 2.0]]}, "labels"),
        ("calibrate", {"calibration": {"inputs": [[1.0], [1.0, 2.0]]}}, "inhomogeneous|objects"),
        ("calibrate", {"calibration": {"inputs": np.array([None])}}, "objects"),
        ("calibrate", {"calibration": {}, "evaluation_labels": [1]}, "expected evaluation beside"),
        ("calibrate", {"calibration": b"", "scores": pd.DataFrame({"a": []})}, "in its place"),
        ("calibrate", {"logits": [[1.0]], "scores": [1.0], "labels": [0]}, "one of them"),
        ("predict", {}, "exactly one"),
        ("predict", {"inputs": [[1.0]], "logits": [[1.0]]}, "exactly one"),
        ("predict", {"inputs": {"a": [1.0, 2.0], "b": [1.0]}}, "same number of rows"),
        ("predict", {"inputs": 3.0}, "expected rows as an array"),
        ("predict", {"scores": 0.3}, "scores: expected rows as an array, .* got float"),
    ],
)
def test_what_cannot_be_sent_is_told_before(method, given, message) -> None:
    calibration = ["digits"] if method == "predict" else []
    with Client("http://127.0.0.1:9") as client, pytest.raises(ValueError, match=message):
        getattr(client, method)(*calibration, **given)


def test_weights_are_written_beside_an_exported_model(url, tmp_path) -> None:
    folder = DIGITS.parents[1] / "tests" / "data" / "digits"
    name = "model_external.onnx.data"
    inputs, _ = arrays("calibration")
    rows = inputs[:9].astype(np.float32)
    with Client(url) as client:
        samples = DIGITS / "calibration.npz"
        made = client.calibrate(folder / "model_external.onnx", samples, name="outside", **QUICK)
        (tmp_path / "new").mkdir()
        exported = client.export(made, tmp_path / "new" / "calibrated.onnx")
        assert sorted(path.name for path in exported.parent.iterdir()) == ["calibrated.onnx", name]
        session = onnxruntime.InferenceSession(exported)
        (classes,) = session.run(["class"], {session.get_inputs()[0].name: rows})
        assert classes.tolist() == client.predict(made, rows).class_.tolist()
        # Beside the weights of a model that was trained again since.
        (tmp_path / name).write_bytes(b"other weights")
        with pytest.raises(ValueError, match="has other weights than this calibration"):
            client.export(made, tmp_path / "calibrated.onnx")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [name]
    assert (tmp_path / name).read_bytes() == b"other weights"
