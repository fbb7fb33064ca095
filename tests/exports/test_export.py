"""The exported ONNX file answers as the service does; under Node it is in tests/web."""

import hashlib
import json
from pathlib import Path

import httpx
import numpy as np
import onnx
import onnxruntime
import pytest
from graph_models import passthrough
from model_services import (
    MEMBERS,
    as_file,
    labelled_sets,
    model_file,
    predictions,
    quick,
    scores_and_labels,
)
from plain_answers import arrays_of, assert_says
from running_service import calibrated, npz, refit, swept_files

SETS = labelled_sets()
X = SETS["evaluation_inputs"][:100]
IMAGES = as_file(SETS, n=200)
SMALL = "small_cnn.onnx"
N_ROWS = 600


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


def test_the_file_answers_as_the_service_does(client) -> None:
    serve = {"1": "last_layer_dropout_variance", "5": "energy"}
    options = {"serve": serve, "measures": [*serve.values()], "lookup": "interpolated"}
    made(client, "export-settings", "squeezenet_like.onnx", monotone=True, **options)
    content = export(client, "export-settings").raise_for_status().content
    assert_says(run(content, X), predictions(client, "export-settings", X))


# Classes, kind of scores, and version of the operators.
SCORES = {
    "10 logits": (10, "logits", 11),
    "2 logits": (2, "logits", 17),
    "2 probabilities": (2, "probabilities", 17),
    "1000 logits": (1000, "logits", 17),
    "1000 probabilities": (1000, "probabilities", 11),
    "10 probabilities": (10, "probabilities", 23),
}
LOOKUPS = ("smooth", "interpolated", "step")
PAIRS = {f"{lookup}, {name}": (lookup, SCORES[name]) for name in SCORES for lookup in LOOKUPS}
QUICK = ("smooth, 10 logits", "interpolated, 2 probabilities", "step, 10 probabilities")


def learned(client: httpx.Client, case: tuple, lookup: str) -> tuple[bytes, np.ndarray, list[dict]]:
    """Return a file whose events learned serves, many rows, and the service's answers."""
    n_classes, kind, opset = case
    scores, labels = scores_and_labels(n_classes, kind, 1000, seed=1)
    model = passthrough(shape=("N", n_classes), opset=opset)
    top_k = [1] if n_classes == 2 else [1, 5]
    config = {"name": "file", "measures": ["learned"], "lookup": lookup, "top_k": top_k}
    archive = npz(inputs=scores, labels=labels)
    calibrated(client, config, model=model.SerializeToString(), calibration=archive)
    rows, _ = scores_and_labels(n_classes, kind, N_ROWS, seed=2)
    content = export(client, "file").raise_for_status().content
    return content, rows, predictions(client, "file", rows)


@pytest.mark.parametrize("pair", quick(PAIRS, *QUICK))
def test_the_file_answers_many_rows_as_the_service_does(client, pair) -> None:
    lookup, case = pair
    content, rows, answered = learned(client, case, lookup)
    arrays, expected = run(content, rows), arrays_of(answered)
    assert len(np.unique(expected["top1_uncertainty"])) > N_ROWS / 4
    for name, values in expected.items():
        is_real = values.dtype.kind == "f"
        is_measure = name.endswith("_uncertainty")
        tolerance = {"rtol": 1e-5 * is_measure, "atol": 1e-5 if is_measure else 1e-6 * is_real}
        np.testing.assert_allclose(arrays[name], values, **tolerance, err_msg=name)


@pytest.fixture(scope="module")
def exported(client) -> httpx.Response:
    made(client, "whole", SMALL)
    return export(client, "whole").raise_for_status()


def test_headers_report_and_metadata_tell_what_it_is(client, exported) -> None:
    sha256 = hashlib.sha256(exported.content).hexdigest()
    assert exported.headers["ETag"] == f'"{sha256}"'
    assert exported.headers["Content-Disposition"].endswith('filename="whole-1.onnx"')
    figures = dict(part.split("=") for part in exported.headers["Howsure-Parity"].split("; "))
    assert float(figures.pop("probability")) <= 1e-6
    assert figures == {"samples": "200", "classes": "0", "bins": "0"}
    report = client.get("/report", params={"calibration": "whole@1"}).json()["export"]
    assert (report["sha256"], report["size"]) == (sha256, len(exported.content))
    model = onnx.load_from_string(exported.content)
    notes = {entry.key.removeprefix("howsure."): entry.value for entry in model.metadata_props}
    assert (notes["name"], notes["columns"]) == ("whole", "null")
    assert json.loads(notes["measures"]).keys() == {"1", "5"}
    assert notes["model_sha256"] == hashlib.sha256(model_file(SMALL)).hexdigest()


def test_it_is_made_once_and_goes_with_its_calibration(client, service) -> None:
    resource = made(client, "passing", SMALL)
    first, second = (export(client, "passing").raise_for_status().content for _ in range(2))
    assert first == second
    folder = f"{resource['id']}/export"
    assert sum(folder in path for path in swept_files(service.folder)) == 1
    client.delete(f"/calibrations/{resource['id']}").raise_for_status()
    assert not [path for path in swept_files(service.folder) if resource["id"] in path]
    assert export(client, resource["id"]).status_code == httpx.codes.NOT_FOUND


def test_a_refit_has_a_file_of_its_own(client, exported) -> None:
    """With the same head, also where it has fewer events."""
    changed = refit(client, "whole@1", bins=3, top_k=[1]).json()
    report = client.get("/report", params={"calibration": changed["id"]}).json()
    assert report["export"] is None
    answers = run(export(client, changed["id"]).content, X)
    assert not any(name.startswith("top5") for name in answers)
    assert answers["top1_bin"].max() == 2
    assert_says(answers, predictions(client, changed["id"], X))


NO_GRAPHS = [([SMALL], "gradient_norm", "gradient_norm"), (MEMBERS, "entropy", "ensemble")]


@pytest.mark.parametrize(("models", "measure", "word"), NO_GRAPHS)
def test_what_is_no_single_graph_is_refused(client, models, measure, word) -> None:
    config = {"name": "no-graph", "measures": [measure], "gradient": {"directions": 2}}
    calibrated(client, config, model=[model_file(name) for name in models], calibration=IMAGES)
    answer = export(client, "no-graph")
    assert answer.status_code == httpx.codes.CONFLICT
    assert word in answer.json()["detail"]
