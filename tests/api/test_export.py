"""The calibrated model as one file: it answers as the service does, without it."""

import hashlib
import json

import httpx
import numpy as np
import onnx
import onnxruntime
import pytest
from pass_service import MEMBERS, as_file, calibrate_models, labelled_sets, model_file, npz
from running_service import calibrate, kept_files

SETS = labelled_sets()
X = SETS["evaluation_inputs"]


def calibrated(client, name, models=("small_cnn.onnx",), **config) -> dict:
    answer = calibrate_models(
        client,
        [model_file(model) for model in models],
        {"name": name, "top_k": [1, 5], "bins": 10} | config,
        calibration=as_file(SETS),
    )
    assert answer.status_code == httpx.codes.CREATED, answer.text
    assert answer.json()["status"] == "succeeded", answer.json()["error"]
    return answer.json()


def export(client, name) -> httpx.Response:
    return client.get(f"/calibrations/{name}/model.onnx")


def run(content: bytes, x) -> dict:
    session = onnxruntime.InferenceSession(content)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: x}), strict=True))


def predicted(client, name, x) -> list[dict]:
    body = {"calibration": name, "inputs": x.tolist()}
    return client.post("/predict", json=body).raise_for_status().json()["predictions"]


def check_equal(found: dict, answers: list[dict]) -> None:
    np.testing.assert_array_equal(found["class"], [a["class"] for a in answers])
    shown = [[c["class"] for c in a["classes"]] for a in answers]
    np.testing.assert_array_equal(found["topk_class"], shown)
    scores = [[c["score"] for c in a["classes"]] for a in answers]
    np.testing.assert_allclose(found["topk_score"], scores, atol=1e-6)
    for event in [name for name in answers[0] if name.startswith("top")]:
        np.testing.assert_array_equal(found[f"{event}_bin"], [a[event]["bin"] for a in answers])
        for name, values in {
            "probability": [a[event]["probability"] for a in answers],
            "lower": [a[event]["interval"][0] for a in answers],
            "upper": [a[event]["interval"][1] for a in answers],
        }.items():
            np.testing.assert_allclose(found[f"{event}_{name}"], values, rtol=0, atol=1e-6)
        np.testing.assert_allclose(
            found[f"{event}_uncertainty"], [a[event]["uncertainty"] for a in answers], rtol=1e-4
        )
    flags = [a["out_of_distribution"] for a in answers]
    np.testing.assert_array_equal(found["out_of_distribution"], flags)
    for risk in answers[0]["abstain"]:
        # Null, for want of a threshold: nothing may be accepted.
        expected = [True if a["abstain"][risk] is None else a["abstain"][risk] for a in answers]
        np.testing.assert_array_equal(found[f"abstain_{risk}"], expected)
    np.testing.assert_array_equal(
        found["abstain"], found[f"abstain_{next(iter(answers[0]['abstain']))}"]
    )


@pytest.mark.parametrize(
    ("name", "model", "config"),
    [
        pytest.param("step", "small_cnn.onnx", {}, marks=pytest.mark.slow),
        ("line", "small_cnn.onnx", {"lookup": "interpolated", "monotone": True}),
        pytest.param(
            "named",
            "small_cnn.onnx",
            {"serve": {"1": "margin", "5": "energy"}, "measures": ["margin", "energy"]},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "last",
            "small_cnn.onnx",
            {"measures": ["last_layer_dropout_variance"]},
            marks=pytest.mark.slow,
        ),
        (
            "cut",
            "squeezenet_like.onnx",
            {
                "measures": ["last_layer_dropout_variance", "entropy"],
                "serve": {"1": "last_layer_dropout_variance"},
            },
        ),
        pytest.param(
            "words",
            "hidden_dropout_cnn.onnx",
            {"classes": [f"digit {i}" for i in range(10)]},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_file_answers_as_the_service_does(client, name, model, config) -> None:
    calibrated(client, name, [model], **config)
    answer = export(client, name)
    assert answer.status_code == httpx.codes.OK, answer.text
    check_equal(run(answer.content, X), predicted(client, name, X))


@pytest.fixture(scope="module")
def exported(client) -> httpx.Response:
    calibrated(client, "whole")
    return export(client, "whole").raise_for_status()


def test_headers_tell_digest_and_parity(exported) -> None:
    assert exported.headers["ETag"] == f'"{hashlib.sha256(exported.content).hexdigest()}"'
    assert exported.headers["Content-Disposition"].endswith('filename="whole-1.onnx"')
    figures = dict(part.split("=") for part in exported.headers["Howsure-Parity"].split("; "))
    assert figures.keys() == {"samples", "classes", "bins", "probability"}
    assert (figures["samples"], figures["classes"], figures["bins"]) == ("600", "0", "0")
    assert float(figures["probability"]) <= 1e-6


def test_the_report_tells_the_same(client, exported) -> None:
    found = client.get("/report", params={"calibration": "whole"}).json()["export"]
    assert found["sha256"] == hashlib.sha256(exported.content).hexdigest()
    assert found["size"] == len(exported.content)
    assert found["parity"]["samples"] == 600
    assert found["parity"]["bins"] == 0


def test_it_is_made_once(client, service, exported) -> None:
    again = export(client, "whole")
    assert again.content == exported.content
    calibration_id = client.get("/calibrations/whole").json()["id"]
    kept = [path for path in kept_files(service.folder) if f"{calibration_id}/export" in path]
    assert len(kept) == 1


def test_the_models_own_output_and_metadata_stay(exported) -> None:
    model = onnx.load_from_string(exported.content)
    onnx.checker.check_model(model, full_check=True)
    plain = onnx.load_from_string(model_file("small_cnn.onnx"))
    assert list(model.graph.input) == list(plain.graph.input)
    assert model.graph.output[0].name == "logits"
    session = onnxruntime.InferenceSession(model_file("small_cnn.onnx"))
    own = session.run(None, {session.get_inputs()[0].name: X})[0]
    np.testing.assert_allclose(run(exported.content, X)["logits"], own, atol=1e-5)
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert notes["howsure.name"] == "whole"
    assert json.loads(notes["howsure.measures"]).keys() == {"1", "5"}
    assert notes["howsure.model_sha256"] == hashlib.sha256(model_file("small_cnn.onnx")).hexdigest()


def test_a_row_that_is_not_finite_disturbs_no_other(exported) -> None:
    x = X[:8].copy()
    x[3, 0, 0, 0] = np.nan
    whole, broken = run(exported.content, X[:8]), run(exported.content, x)
    assert broken["top1_bin"][3] == -1
    assert np.isnan(broken["top1_probability"][3])
    assert broken["abstain"][3]
    others = [0, 1, 2, 4, 5, 6, 7]
    for name, values in whole.items():
        np.testing.assert_array_equal(broken[name][others], values[others])


def test_a_refit_has_a_file_of_its_own(client, exported) -> None:
    changed = client.post(
        "/calibrations/whole/refit", json={"bins": 5}, headers={"Prefer": "wait=60"}
    ).json()
    report = client.get("/report", params={"calibration": changed["id"]}).json()
    assert report["export"] is None
    answer = export(client, changed["id"])
    assert run(answer.content, X)["top1_bin"].max() == 4
    check_equal(run(answer.content, X), predicted(client, changed["id"], X))


def test_a_refit_to_fewer_events_answers_with_the_same_head(client, exported) -> None:
    changed = client.post(
        "/calibrations/whole/refit", json={"top_k": [1]}, headers={"Prefer": "wait=60"}
    ).json()
    found = run(export(client, changed["id"]).content, X)
    assert not any(name.startswith("top5") for name in found)
    check_equal(found, predicted(client, changed["id"], X))


def test_it_goes_with_its_calibration(client, service) -> None:
    made = calibrated(client, "passing")
    export(client, "passing").raise_for_status()
    assert any(made["id"] in path for path in kept_files(service.folder))
    client.delete(f"/calibrations/{made['id']}").raise_for_status()
    assert not any(made["id"] in path for path in kept_files(service.folder))
    assert export(client, made["id"]).status_code == httpx.codes.NOT_FOUND


@pytest.mark.parametrize(
    ("name", "models", "config", "said"),
    [
        ("passes", ["hidden_dropout_cnn.onnx"],
         {"measures": ["dropout_variance"]}, "dropout_variance"),
        ("slopes", ["small_cnn.onnx"], {"measures": ["gradient_norm"]}, "gradient_norm"),
        ("several", MEMBERS, {"measures": ["entropy"]}, "single graph"),
        ("random", ["variational_mlp.onnx"],
         {"measures": ["ensemble_variance"]}, "single graph"),
    ],
)  # fmt: skip
def test_what_is_no_single_graph_is_refused(client, name, models, config, said) -> None:
    calibrated(client, name, models, **config)
    answer = export(client, name)
    assert answer.status_code == httpx.codes.CONFLICT
    assert said in answer.json()["detail"]


def test_a_calibration_of_outputs_has_no_model(client) -> None:
    logits = np.random.default_rng(0).normal(size=(200, 7))
    file = npz(logits=logits, labels=np.arange(200) % 7)
    made = calibrate(client, calibration=file, config='{"name": "outputs", "bins": 2}')
    assert made.json()["status"] == "succeeded"
    answer = export(client, "outputs")
    assert answer.status_code == httpx.codes.CONFLICT
    assert "no ONNX model" in answer.json()["detail"]


def test_weights_beside_the_model_stay_beside_it(client, tmp_path) -> None:
    model = onnx.load_from_string(model_file("small_cnn.onnx"))
    onnx.save_model(
        model,
        tmp_path / "m.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=100,
    )
    weights = (tmp_path / "weights.bin").read_bytes()
    answer = calibrate(
        client,
        model=(tmp_path / "m.onnx").read_bytes(),
        calibration=as_file(SETS),
        config='{"name": "beside", "bins": 5}',
        **{"weights.bin": weights},
    )
    assert answer.json()["status"] == "succeeded", answer.text
    content = export(client, "beside").raise_for_status().content
    assert len(content) < len(weights) + 20_000
    folder = tmp_path / "taken"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(content)
    kept = client.get("/calibrations/beside/model_data/weights.bin").raise_for_status()
    assert kept.content == weights
    (folder / "weights.bin").write_bytes(kept.content)
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, {session.get_inputs()[0].name: X}), strict=True))
    check_equal(found, predicted(client, "beside", X))
    missing = client.get("/calibrations/beside/model_data/other.bin")
    assert missing.status_code == httpx.codes.NOT_FOUND
