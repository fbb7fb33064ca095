"""Options for keys of the configuration, and companions of models."""

import json
import re
import shutil

import numpy as np
import onnx
import pytest
from running_service import DIGITS

from service.cli.config_options import config_option
from service.cli.failure import CommandFailed

MODEL, SAMPLES = DIGITS / "model.onnx", DIGITS / "calibration.npz"
EXTERNAL = DIGITS.parents[1] / "tests" / "data" / "digits"
WEIGHTS = "model_external.onnx.data"


def test_columns_of_a_table(command, tmp_path) -> None:
    """The table has a column too many, and another name for the label."""
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
    tried = command("calibrate", MODEL, table, *columns, "--dry-run").stdout
    assert re.search(r"accuracy.*: 9\d\.\d %", tried)


def test_the_json_of_options(tmp_path) -> None:
    options = {"classes": '["a, b", "c"]', "columns": ['{"x": "a"}', "label=b"], "bins": "auto"}
    config = {"classes": ["a, b", "c"], "columns": {"x": "a", "label": ["b"]}, "bins": "auto"}
    assert config_option(None, **options) == config
    hub = tmp_path / "config.json"
    for text in ("\ufeffcat\ndog\n", '{"id2label": {"1": "dog", "0": "cat"}}'):
        hub.write_text(text)
        assert config_option(None, classes=str(hub)) == {"classes": ["cat", "dog"]}
    options = {"classes": "cat, dog", "top_k": "3", "measures": "a,b", "max_risk": "0.1, 0.05"}
    config = {"classes": ["cat", "dog"], "top_k": [3], "measures": ["a", "b"]}
    config["selective"] = [{"max_risk": 0.1}, {"max_risk": 0.05}]
    assert config_option(None, **options) == config
    # An option changes one key of `output`.
    text = json.dumps({"bins": 9, "output": {"name": "scores", "kind": "logits"}})
    config = {"bins": 5, "output": {"name": "scores", "kind": "probabilities"}}
    assert config_option(text, output_kind="probabilities", bins="5") == config
    for name, value in {"top_k": "1;5", "classes": "[dog]", "max_risk": "x"}.items():
        with pytest.raises(CommandFailed, match=f"--{name.replace('_', '-')}"):
            config_option(None, **{name: value})


def test_weights_beside_the_model_are_sent(command, quick, tmp_path) -> None:
    """And not those of another model, whose name ends alike."""
    model, weights = tmp_path / "model_external.onnx", tmp_path / WEIGHTS
    for name in (model.name, WEIGHTS):
        shutil.copy(EXTERNAL / name, tmp_path)
    best = tmp_path / "best_model_external.onnx"
    options = {"save_as_external_data": True, "location": "weights", "size_threshold": 0}
    onnx.save(onnx.load(model), best, **options)
    assert "model_data" not in command("calibrate", best, SAMPLES, "--dry-run").stdout
    command("calibrate", model, SAMPLES, *quick, "--name", "external")
    exported = tmp_path / "elsewhere" / "calibrated.onnx"
    exported.parent.mkdir()
    assert command("export", "external", "-o", exported).stdout.endswith(f": {WEIGHTS}\n")
    weights.rename(tmp_path / "weights.bin")
    refused = command("calibrate", model, SAMPLES, "--dry-run", status=1).stderr
    assert WEIGHTS in refused
    assert "--model-data" in refused
