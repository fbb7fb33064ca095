"""Both clients do all that the service offers, from whatever form the data has."""

import json

import httpx
import numpy as np
import onnx
import onnxruntime
import pytest
from plain_answers import assert_says
from running_service import DIGITS, QUICK
from scripted_server import client_of

from howsure.client import Calibration, Client, HowsureError

EXTERNAL = DIGITS.parents[1] / "tests" / "data" / "digits"
WEIGHTS = "model_external.onnx.data"


def arrays(part: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(DIGITS / f"{part}.npz") as archive:
        return archive["inputs"], archive["labels"]


@pytest.fixture(params=["sync", pytest.param("async", marks=pytest.mark.slow)])
def client(request, url):
    with client_of(request.param, url) as made:
        yield made


def test_a_client_of_httpx_has_its_own_address(url) -> None:
    with httpx.Client(base_url=url) as http, pytest.raises(ValueError, match="address"):
        Client(url, http=http)


def test_a_calibration_from_its_beginning_to_its_end(client, url, tmp_path) -> None:
    inputs, labels = arrays("calibration")
    told, name = [], f"whole-{type(client).__name__}"
    made = client.calibrate(
        DIGITS / "model.onnx",
        (inputs, labels),
        evaluation=DIGITS / "evaluation.npz",
        config={"name": name},
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
    assert made in client.calibrations(name=name, status="succeeded")
    assert client.calibrations(name=name, limit=1)[0].name == name

    report = client.report(made)
    assert report == httpx.get(f"{url}/report", params={"calibration": made.id}).json()
    assert client.report_text(made).startswith(f"# {name}@")
    assert client.report_text(made, "csv").splitlines()[0].count(",") > 2
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


FORMS = ["bytes", "file", "memory", "names", "ensemble", "external weights"]


@pytest.fixture(scope="module")
def expected(url) -> dict:
    with Client(url) as client:
        return client.dry_run(DIGITS / "model.onnx", DIGITS / "calibration.npz", **QUICK)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_model_and_a_set_gives_the_same(form, url, expected) -> None:
    model, samples = DIGITS / "model.onnx", DIGITS / "calibration.npz"
    inputs, labels = arrays("calibration")
    external = EXTERNAL / "model_external.onnx"
    weights = {WEIGHTS: (EXTERNAL / WEIGHTS).read_bytes()}
    with Client(url) as client, model.open("rb") as open_model, samples.open("rb") as open_set:
        open_set.read(5)  # whatever was read before
        parts, options = {
            "bytes": ((model.read_bytes(), samples.read_bytes()), {}),
            "file": ((open_model, open_set), {}),
            "memory": ((onnx.load(model), (inputs.tolist(), labels.tolist())), {}),
            "names": ((str(model), {"inputs": inputs, "labels": labels}), {}),
            "ensemble": (([model, model.read_bytes()], samples), {}),
            "external weights": ((external, samples), {"model_data": weights}),
        }[form]
        tried = client.dry_run(*parts, **options, **QUICK)
    assert tried["accuracy"] == expected["accuracy"]
    assert tried["data"]["class_counts"] == expected["data"]["class_counts"]
    assert tried["cost"]["passes"] == (2 if form == "ensemble" else 1)


def test_weights_are_written_beside_an_exported_model(url, tmp_path) -> None:
    inputs, _ = arrays("calibration")
    rows, samples = inputs[:9].astype(np.float32), DIGITS / "calibration.npz"
    with Client(url) as client:
        model = EXTERNAL / "model_external.onnx"
        made = client.calibrate(model, samples, name="outside", **QUICK)
        (tmp_path / "new").mkdir()
        exported = client.export(made, tmp_path / "new" / "calibrated.onnx")
        names = sorted(path.name for path in exported.parent.iterdir())
        assert names == ["calibrated.onnx", WEIGHTS]
        session = onnxruntime.InferenceSession(exported)
        (classes,) = session.run(["class"], {session.get_inputs()[0].name: rows})
        assert classes.tolist() == client.predict(made, rows).class_.tolist()
        # Beside the weights of a model that was trained again since.
        (tmp_path / WEIGHTS).write_bytes(b"other weights")
        with pytest.raises(ValueError, match=WEIGHTS):
            client.export(made, tmp_path / "calibrated.onnx")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [WEIGHTS]
    assert (tmp_path / WEIGHTS).read_bytes() == b"other weights"
