"""Options for keys of the configuration, and companions of models."""

import json
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
from running_service import DIGITS

from service.cli.config_options import config_option
from service.cli.failure import CommandFailed

MODEL, SAMPLES = DIGITS / "model.onnx", DIGITS / "calibration.npz"
EXTERNAL = DIGITS.parents[1] / "tests" / "data" / "digits"
WEIGHTS = "model_external.onnx.data"


def test_options_become_keys(client, command, tmp_path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("\n".join(f"digit {k}" for k in range(10)))
    options = [
        *("--name", "options", "--config", '{"folds": 2, "bins": 9}', "--bins", "5"),
        *("--measures", "entropy,margin", "--top-k", "1,2", "--lookup", "interpolated"),
        *("--output-kind", "logits", "--classes", names),
    ]
    command("calibrate", MODEL, SAMPLES, *options)
    config = client.get("/calibrations/options").json()["config"]
    assert (config["folds"], config["bins"], config["lookup"]) == (2, 5, "interpolated")
    assert (config["measures"], config["top_k"]) == (["entropy", "margin"], [1, 2])
    assert config["output"]["kind"] == "logits"
    assert config["classes"] == [f"digit {k}" for k in range(10)]


def test_columns_of_a_table(client, command, quick, tmp_path) -> None:
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
    command("calibrate", MODEL, table, *columns, *quick, "--name", "columns")
    resource = client.get("/calibrations/columns").json()
    assert resource["config"]["columns"] == {"inputs": features, "label": ["digit"]}
    assert resource["accuracy"]["1"] > 0.9


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


@pytest.mark.parametrize("options", [{"top_k": "1;5"}, {"classes": "[dog]"}, {"max_risk": "x"}])
def test_an_option_that_is_no_json_is_named(options) -> None:
    with pytest.raises(CommandFailed, match=f"--{next(iter(options)).replace('_', '-')}"):
        config_option(None, **options)


@pytest.fixture
def external_model(tmp_path):
    """The digits' model, whose weights lie beside it, beside those of another model."""
    (tmp_path / "other.onnx.data").write_bytes(b"of another model")
    for name in ("model_external.onnx", WEIGHTS):
        shutil.copy(EXTERNAL / name, tmp_path)
    return tmp_path / "model_external.onnx"


def test_weights_beside_the_model_are_sent(command, quick, tmp_path, external_model) -> None:
    files = (external_model, SAMPLES)
    command("calibrate", *files, *quick, "--name", "external")
    exported = tmp_path / "elsewhere" / "calibrated.onnx"
    exported.parent.mkdir()
    printed = command("export", "external", "-o", exported).stdout
    assert "600 samples" in printed
    assert printed.endswith(f": {WEIGHTS}\n")
    assert "class" in {one.name for one in onnxruntime.InferenceSession(exported).get_outputs()}
    assert command("export", "external", "-o", exported).stdout == printed  # the same weights
    (exported.parent / WEIGHTS).write_bytes(b"of another version")
    exported.unlink()
    assert WEIGHTS in command("export", "external", "-o", exported, status=1).stderr
    assert [one.name for one in exported.parent.iterdir()] == [WEIGHTS]
    (tmp_path / WEIGHTS).rename(tmp_path / "weights.bin")
    refused = command("calibrate", *files, status=1)
    assert WEIGHTS in refused.stderr
    assert "--model-data" in refused.stderr


def test_weights_of_a_model_whose_name_ends_alike_are_not_sent(
    client, command, quick, tmp_path, external_model
) -> None:
    """``best_model_external.onnx.data`` contains the name of the other file."""
    model, weights = onnx.load(external_model), f"best_{WEIGHTS}"
    best = tmp_path / "best_model_external.onnx"
    onnx.save(model, best, save_as_external_data=True, location=weights, size_threshold=0)
    command("calibrate", best, SAMPLES, *quick, "--name", "best")
    resource = client.get("/calibrations/best").json()
    assert resource["data"]["files"]["model_data"] == [weights]
