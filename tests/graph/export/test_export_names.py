"""The names and the metadata of the one file: ours, the model's own, and where they meet."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from calibrated_files import assert_answers, calibrate
from graph_models import make_model, node, passthrough, value
from onnx import helper

from service.graph.load import load_onnx_model

LOGITS = (3 * np.random.default_rng(0).normal(size=(4000, 10))).astype(np.float32)
ROWS = {"x": LOGITS}


def test_metadata_come_back_from_a_session():
    model = passthrough()
    helper.set_model_props(model, {"author": "someone", "howsure.name": "an older calibration"})
    given = {"howsure.calibration": "an id", "howsure.classes": json.dumps(["naïve", "日本", "c"])}
    file = calibrate(model, ROWS, metadata=given)
    session = onnxruntime.InferenceSession(
        file.graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = session.get_modelmeta().custom_metadata_map
    assert found == {"author": "someone", **given, "howsure.prefix": ""}


@pytest.mark.parametrize("taken", ["input", "output", "value"])
def test_one_name_of_ours_in_the_model_puts_a_prefix_before_all(taken):
    x = "class" if taken == "input" else "x"
    inner = "top5_lower" if taken == "value" else "inner"
    outputs = [value("y")] + ([value("abstain")] if taken == "output" else [])
    nodes = [node("Identity", [x], [inner]), node("Neg", [inner], ["y"])]
    if taken == "output":
        nodes.append(node("Abs", ["y"], ["abstain"]))
    model = make_model(nodes, inputs=[value(x)], outputs=outputs)
    file = calibrate(model, {x: LOGITS}, said={"name": "y"})
    added = file.graph.graph.output[len(outputs) :]
    assert all(output.name.startswith("howsure_") for output in added)
    assert {entry.key: entry.value for entry in file.graph.metadata_props}[
        "howsure.prefix"
    ] == "howsure_"
    answers = assert_answers(file, {x: LOGITS}, prefix="howsure_")
    if taken == "output":
        np.testing.assert_array_equal(file.answer({x: LOGITS})["abstain"], np.abs(LOGITS))
    assert answers["abstain"].dtype == np.bool_


def test_a_calibrated_file_can_be_calibrated_again_and_again():
    model, prefixes, names = passthrough(shape=("N", 10)), [], ["y"]
    for n_bins in (50, 20, 10):
        file = calibrate(model, ROWS, n_bins=n_bins, said={"name": "y"})
        model = file.graph
        found = [output.name for output in model.graph.output]
        assert found[: len(names)] == names
        names = found
        entries = {entry.key: entry.value for entry in model.metadata_props}
        prefixes.append(entries["howsure.prefix"])
        onnx.checker.check_model(model, full_check=True)
    assert prefixes == ["", "howsure_", "howsure_2_"]
    answers = assert_answers(file, ROWS, prefix="howsure_2_")
    assert [file.answer(ROWS)[f"{prefix}top1_bin"].max() for prefix in prefixes] == [49, 19, 9]
    assert answers["top1_bin"].max() == 9


@pytest.mark.parametrize("name", ["howsure_scores", "my_howsure_class", "user.y", "howsure_class"])
def test_the_models_outputs_keep_whatever_name_they_have(name):
    model = make_model(
        [node("Identity", ["x"], [name]), node("Neg", [name], ["class"])],
        outputs=[value(name), value("class")],
    )
    loaded = load_onnx_model(model.SerializeToString()).graph.output[0].name
    file = calibrate(model, ROWS, said={"name": loaded})
    assert [output.name for output in file.graph.graph.output[:2]] == [name, "class"]
    answers = file.answer(ROWS)
    np.testing.assert_array_equal(answers[name], LOGITS)
    np.testing.assert_array_equal(answers["class"], -LOGITS)
