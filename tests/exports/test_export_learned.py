"""The exported ONNX file has the service's smooth and learned answers to many rows.

So it has in ONNX Runtime, and in ONNX Runtime Web under Node.
"""

import numpy as np
import onnxruntime
import pytest
from graph_models import passthrough
from model_services import predictions, quick
from plain_answers import arrays_of
from running_service import calibrated, npz
from scipy.special import softmax
from web_files import predict_under_node, require_node, write_rows

N_ROWS = 600
CASES = {
    "10 logits, opset 11": (10, "logits", 11),
    "10 logits": (10, "logits", 17),
    "2 logits, opset 11": (2, "logits", 11),
    "2 probabilities": (2, "probabilities", 17),
    "10 probabilities, opset 11": (10, "probabilities", 11),
    "1000 logits": (1000, "logits", 17),
    "1000 probabilities, opset 11": (1000, "probabilities", 11),
    "10 logits, opset 23": (10, "logits", 23),
}


def scores_and_labels(n_classes, kind, n, seed):
    """Return scores, some certain to float32, and labels for which classes differ."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes)) * rng.choice([0.5, 2.0, 6.0, 60.0], (n, 1))
    noise = rng.gumbel(size=logits.shape) * (0.5 + np.arange(n_classes) / n_classes)
    labels = (logits + noise).argmax(axis=1)
    scores = softmax(logits, axis=1) if kind == "probabilities" else logits
    return scores.astype(np.float32), labels


def calibrated_model(client, case, lookup):
    """Return the id of a calibration whose events learned serves."""
    n_classes, kind, opset = case
    scores, labels = scores_and_labels(n_classes, kind, 1000, seed=1)
    model = passthrough(shape=("N", n_classes), opset=opset)
    top_k = [1] if n_classes == 2 else [1, 5]
    config = {"name": "file", "measures": ["learned"], "lookup": lookup, "top_k": top_k}
    archive = npz(inputs=scores, labels=labels)
    return calibrated(client, config, model=model.SerializeToString(), calibration=archive)["id"]


LOOKUPS = ("smooth", "interpolated", "step")
PAIRS = {f"{lookup}, {name}": (lookup, CASES[name]) for name in CASES for lookup in LOOKUPS}
QUICK = ("smooth, 10 logits, opset 11", "interpolated, 2 probabilities", "step, 10 logits")


@pytest.mark.parametrize("pair", quick(PAIRS, *QUICK))
def test_the_file_answers_many_rows_as_the_service_does(client, pair):
    lookup, case = pair
    calibration = calibrated_model(client, case, lookup)
    rows, _ = scores_and_labels(*case[:2], N_ROWS, seed=2)
    answer = client.get(f"/calibrations/{calibration}/model.onnx").raise_for_status()
    session = onnxruntime.InferenceSession(answer.content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    values = session.run(None, {session.get_inputs()[0].name: rows})
    found = dict(zip(names, values, strict=True))
    expected = arrays_of(predictions(client, calibration, rows))
    assert len(np.unique(expected["top1_uncertainty"])) > N_ROWS / 4
    for name, values in expected.items():
        if name.endswith(("_probability", "_lower", "_upper", "_score")):
            np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-6, err_msg=name)
        elif name.endswith("_uncertainty"):
            np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_file_answers_many_rows_under_node_as_the_service_does(client, case, tmp_path):
    require_node()
    calibration = calibrated_model(client, case, "smooth")
    rows, _ = scores_and_labels(*case[:2], N_ROWS, seed=2)
    path = tmp_path / "model.onnx"
    path.write_bytes(client.get(f"/calibrations/{calibration}/model.onnx").content)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    written = write_rows(tmp_path / "rows.json", {session.get_inputs()[0].name: rows})
    answers = predict_under_node(written, [path])
    expected = predictions(client, calibration, rows)
    assert len(answers) == len(expected) == N_ROWS
    for found, answer in zip(answers, expected, strict=True):
        assert found["class"] == answer["class"]
        assert found["out_of_distribution"] == answer["out_of_distribution"]
        # Without a threshold the file abstains, and the service has no answer.
        abstain = {risk: beyond is not False for risk, beyond in answer["abstain"].items()}
        assert found["abstain"] == abstain
        for event in (name for name in answer if name.startswith("top")):
            assert found[event]["measure"] == "learned"
            assert found[event]["bin"] == answer[event]["bin"]
            for name in ("probability", "interval"):
                assert found[event][name] == pytest.approx(answer[event][name], rel=0, abs=1e-6)
