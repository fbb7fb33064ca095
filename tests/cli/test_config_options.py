"""Options for keys of the configuration, and companions of models."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from running_service import DIGITS

from service.cli.config_options import config_option
from service.cli.failure import CommandFailed

MODEL, SAMPLES = DIGITS / "model.onnx", DIGITS / "calibration.npz"


def test_options_become_keys(service, command, tmp_path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("\n".join(f"digit {k}" for k in range(10)))
    options = [
        *("--name", "options", "--config", '{"folds": 2, "bins": 9}', "--bins", "5"),
        *("--measures", "entropy,margin", "--top-k", "1,2", "--lookup", "interpolated"),
        *("--output-kind", "logits", "--classes", names),
    ]
    command("calibrate", MODEL, SAMPLES, *options)
    config = service.get("/calibrations/options").json()["config"]
    assert (config["folds"], config["bins"], config["lookup"]) == (2, 5, "interpolated")
    assert (config["measures"], config["top_k"]) == (["entropy", "margin"], [1, 2])
    assert config["output"]["kind"] == "logits"
    assert config["classes"] == [f"digit {k}" for k in range(10)]


def test_columns_of_a_table(service, command, tmp_path) -> None:
    """The table has a column too many, and calls the label otherwise."""
    with np.load(SAMPLES) as archive:
        inputs, labels = archive["inputs"].reshape(len(archive["labels"]), -1), archive["labels"]
    features = [f"pixel{k}" for k in range(inputs.shape[1])]
    rows = np.column_stack([np.arange(len(labels)), inputs, labels])
    table = tmp_path / "digits.csv"
    header = ",".join(["number", *features, "digit"])
    np.savetxt(table, rows, "%g", ",", header=header, comments="")
    refused = command("calibrate", MODEL, table, "--dry-run", status=1)
    assert "label" in refused.stderr
    columns = ("--columns", ",".join(features), "--columns", "label=digit")
    name = ("--name", "columns", "--bins", "5")
    command("calibrate", MODEL, table, *columns, *name, "--measures", "entropy")
    found = service.get("/calibrations/columns").json()
    assert found["config"]["columns"] == {"inputs": features, "label": ["digit"]}
    assert found["accuracy"]["1"] > 0.9


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({"classes": '["a, b", "c"]'}, {"classes": ["a, b", "c"]}),
        ({"classes": "cat, dog"}, {"classes": ["cat", "dog"]}),
        ({"columns": ['{"x": "a"}', "label=b"]}, {"columns": {"x": "a", "label": ["b"]}}),
        ({"output": "scores"}, {"output": {"name": "scores"}}),
        ({"bins": "auto"}, {"bins": "auto"}),
        ({"top_k": "3"}, {"top_k": [3]}),
        ({"max_risk": "0.1, 0.05"}, {"selective": [{"max_risk": 0.1}, {"max_risk": 0.05}]}),
    ],
)
def test_the_json_of_options(options, config) -> None:
    assert config_option(None, **options) == config


def test_an_option_changes_one_key_of_output() -> None:
    text = json.dumps({"output": {"name": "scores", "kind": "logits"}})
    config = config_option(text, output_kind="probabilities")
    assert config == {"output": {"name": "scores", "kind": "probabilities"}}


@pytest.mark.parametrize("options", [{"top_k": "1;5"}, {"classes": "[dog]"}])
def test_an_option_that_is_no_json_is_named(options) -> None:
    with pytest.raises(CommandFailed, match=f"--{next(iter(options)).replace('_', '-')}"):
        config_option(None, **options)


def test_a_value_that_the_configuration_does_not_know(command) -> None:
    refused = command("calibrate", MODEL, SAMPLES, "--lookup", "smoothest", status=1)
    assert "config.lookup: expected" in refused.stderr


@pytest.fixture
def external_model(tmp_path):
    """A linear model whose weights lie in ``model.onnx.data``."""
    weights = np.random.default_rng(0).normal(size=(64, 10)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="model.onnx.data", size_threshold=0)
    return path


def test_weights_beside_the_model_are_sent(service, command, tmp_path, external_model) -> None:
    (tmp_path / "other.onnx.data").write_bytes(b"of another model")
    rng = np.random.default_rng(1)
    inputs, labels = rng.normal(size=(60, 64)).astype(np.float32), rng.integers(10, size=60)
    np.savez(tmp_path / "set.npz", inputs=inputs, labels=labels)
    files = (external_model, tmp_path / "set.npz")
    command("calibrate", *files, "--name", "external", "--measures", "entropy", "--bins", "1")
    assert service.get("/calibrations/external").json()["status"] == "succeeded"
    exported = tmp_path / "elsewhere" / "calibrated.onnx"
    exported.parent.mkdir()
    said = command("export", "external", "-o", exported).stdout
    assert "on 60 samples its classes and bins are those of the service" in said
    assert said.endswith("\nkeep beside it: model.onnx.data\n")
    assert "class" in {one.name for one in onnxruntime.InferenceSession(exported).get_outputs()}
    kept = (tmp_path / "model.onnx.data").read_bytes()
    assert command("export", "external", "-o", exported).stdout == said  # the same weights
    (exported.parent / "model.onnx.data").write_bytes(b"of another version")
    exported.unlink()
    refused = command("export", "external", "-o", exported, status=1).stderr
    assert "model.onnx.data has other weights than this calibration" in refused
    assert [one.name for one in exported.parent.iterdir()] == ["model.onnx.data"]
    assert (tmp_path / "model.onnx.data").read_bytes() == kept
    (tmp_path / "model.onnx.data").rename(tmp_path / "weights.bin")
    refused = command("calibrate", *files, status=1)
    assert "'model.onnx.data'" in refused.stderr
    assert "--model-data FILE" in refused.stderr


def test_weights_of_a_model_whose_name_ends_alike_are_not_sent(
    service, command, tmp_path, external_model
) -> None:
    """``best_model.onnx.data`` contains the name of the other file."""
    model = onnx.load(external_model)
    best = tmp_path / "best_model.onnx"
    options = {"location": "best_model.onnx.data", "size_threshold": 0}
    onnx.save(model, best, save_as_external_data=True, **options)
    inputs = np.random.default_rng(2).normal(size=(60, 64)).astype(np.float32)
    np.savez(tmp_path / "set.npz", inputs=inputs, labels=np.arange(60) % 10)
    options = ("--name", "best", "--measures", "entropy", "--bins", "1")
    command("calibrate", best, tmp_path / "set.npz", *options)
    found = service.get("/calibrations/best").json()
    assert found["data"]["files"]["model_data"] == ["best_model.onnx.data"]
