"""The exported ONNX file answers as the service does."""

import hashlib
import json
from pathlib import Path

import httpx
import numpy as np
import onnx
import onnxruntime
import pytest
from job_workspaces import logits_set
from model_services import MEMBERS, as_file, labelled_sets, model_file, predictions, quick
from plain_answers import assert_says
from running_service import DIGITS, calibrated, digits, kept_files, refit

SETS = labelled_sets()
X = SETS["evaluation_inputs"][:100]
IMAGES = as_file(SETS, n=200)
SMALL = "small_cnn.onnx"


def made(client: httpx.Client, name: str, *models: str, **config) -> dict:
    options = {"name": name, "top_k": [1, 5], "measures": ["entropy"]} | config
    files = [model_file(model) for model in models]
    return calibrated(client, options, model=files, calibration=IMAGES)


def export(client: httpx.Client, name: str) -> httpx.Response:
    return client.get(f"/calibrations/{name}/model.onnx")


def run(content: bytes | Path, x: np.ndarray) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(content)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: x}), strict=True))


LAST = "last_layer_dropout_variance"
NAMED = {"serve": {"1": "margin", "5": "energy"}, "measures": ["margin", "energy"]}
SETTINGS = {
    "smooth": (SMALL, {"measures": ["learned"]}),
    "step": (SMALL, {"lookup": "step"}),
    "line": (SMALL, {"lookup": "interpolated", "monotone": True}),
    "named": (SMALL, NAMED),
    "last": (SMALL, {"measures": [LAST]}),
    "cut": ("squeezenet_like.onnx", {"measures": [LAST, "entropy"], "serve": {"1": LAST}}),
    "words": ("hidden_dropout_cnn.onnx", {"classes": [f"digit {i}" for i in range(10)]}),
}


@pytest.mark.parametrize("case", quick(SETTINGS, "smooth", "cut"))
def test_the_file_answers_as_the_service_does(client, case) -> None:
    model, config = case
    made(client, "export-settings", model, **config)
    answer = export(client, "export-settings")
    assert answer.status_code == httpx.codes.OK, answer.text
    assert_says(run(answer.content, X), predictions(client, "export-settings", X))


@pytest.fixture(scope="module")
def exported(client) -> httpx.Response:
    made(client, "whole", SMALL)
    return export(client, "whole").raise_for_status()


def test_headers_and_report_tell_digest_and_parity(client, exported) -> None:
    sha256 = hashlib.sha256(exported.content).hexdigest()
    assert exported.headers["ETag"] == f'"{sha256}"'
    assert exported.headers["Content-Disposition"].endswith('filename="whole-1.onnx"')
    figures = dict(part.split("=") for part in exported.headers["Howsure-Parity"].split("; "))
    assert float(figures.pop("probability")) <= 1e-6
    assert figures == {"samples": "200", "classes": "0", "bins": "0"}
    report = client.get("/report", params={"calibration": "whole@1"}).json()["export"]
    assert (report["sha256"], report["size"]) == (sha256, len(exported.content))
    assert (report["parity"]["samples"], report["parity"]["bins"]) == (200, 0)


def test_it_is_made_once_and_goes_with_its_calibration(client, service) -> None:
    resource = made(client, "passing", SMALL)
    content = export(client, "passing").raise_for_status().content
    assert export(client, "passing").content == content

    def files() -> list[str]:
        return [path for path in kept_files(service.folder) if resource["id"] in path]

    assert len([path for path in files() if "/export" in path]) == 1
    client.delete(f"/calibrations/{resource['id']}").raise_for_status()
    assert files() == []
    assert export(client, resource["id"]).status_code == httpx.codes.NOT_FOUND


def test_metadata_name_calibration_measures_and_model(exported) -> None:
    model = onnx.load_from_string(exported.content)
    notes = {entry.key.removeprefix("howsure."): entry.value for entry in model.metadata_props}
    assert (notes["name"], notes["columns"]) == ("whole", "null")
    assert json.loads(notes["measures"]).keys() == {"1", "5"}
    assert notes["model_sha256"] == hashlib.sha256(model_file(SMALL)).hexdigest()


@pytest.mark.parametrize("changes", [{"bins": 3}, {"top_k": [1]}])
def test_a_refit_has_a_file_of_its_own(client, exported, changes) -> None:
    """With the same head, also where it has fewer events."""
    changed = refit(client, "whole@1", **changes).json()
    report = client.get("/report", params={"calibration": changed["id"]}).json()
    assert report["export"] is None
    answers = run(export(client, changed["id"]).content, X)
    assert any(name.startswith("top5") for name in answers) == ("top_k" not in changes)
    assert answers["top1_bin"].max() == changed["config"]["bins"] - 1
    assert_says(answers, predictions(client, changed["id"], X))


@pytest.mark.parametrize(
    ("models", "measure", "word"),
    [
        ([SMALL], "gradient_norm", "gradient_norm"),
        (MEMBERS, "entropy", "ensemble"),
        (["variational_mlp.onnx"], "ensemble_variance", "ensemble"),
        ([], "entropy", "outputs"),
    ],
)
def test_what_is_no_single_graph_is_refused(client, models, measure, word) -> None:
    config = {"name": "no-graph", "measures": [measure], "gradient": {"directions": 2}}
    files, content = [model_file(name) for name in models], IMAGES if models else logits_set()
    calibrated(client, config, model=files, calibration=content)
    answer = export(client, "no-graph")
    assert answer.status_code == httpx.codes.CONFLICT
    assert word in answer.json()["detail"]


def test_weights_beside_the_model_stay_beside_it(client, tmp_path) -> None:
    model = DIGITS.parents[1] / "tests" / "data" / "digits" / "model_external.onnx"
    name = "model_external.onnx.data"
    weights = model.with_name(name).read_bytes()
    sets = {"model": model.read_bytes(), "calibration": digits("calibration.npz")}
    calibrated(client, {"name": "beside"}, **sets, **{name: weights})
    content = export(client, "beside").raise_for_status().content
    assert weights[:1000] not in content
    (tmp_path / "model.onnx").write_bytes(content)
    kept = client.get(f"/calibrations/beside/model_data/{name}").raise_for_status()
    assert kept.content == weights
    (tmp_path / name).write_bytes(kept.content)
    rows = X.reshape(-1, 64) * 16
    assert_says(run(tmp_path / "model.onnx", rows), predictions(client, "beside", rows))
    missing = client.get("/calibrations/beside/model_data/other.bin")
    assert missing.status_code == httpx.codes.NOT_FOUND
