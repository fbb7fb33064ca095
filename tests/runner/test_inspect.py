"""What is found when a model is loaded and tried on the first rows of a set."""

import numpy as np
import pytest
from forked_children import SERVER
from graph_models import node
from runner_models import (
    N_FEATURES,
    linear,
    of_rows,
    rows,
    save,
    softmax_of_two,
    weights,
    with_external_weights,
)

from service.errors import (
    InferenceFailed,
    InvalidConfig,
    InvalidDataset,
    InvalidOnnxModel,
    TooLarge,
)
from service.runner.messages.onnx_models import OnnxModelFiles
from service.runner.pool import RunnerPool


def inspect(pool, files, trial=None, *, top_k=(1, 5), **options):
    trial = {"x": rows(20)} if trial is None else trial
    return pool.inspect(files, top_k=top_k, trial=trial, **options)


def test_a_model_is_described(pool, tmp_path):
    loaded = inspect(pool, save(tmp_path, linear()))
    assert [(t.name, t.dtype, t.shape) for t in loaded.description.inputs] == [
        ("x", "float32", (None, N_FEATURES))
    ]
    assert (loaded.output.name, loaded.output.kind, loaded.n_classes) == ("y", "logits", 10)
    assert loaded.top_k == (1, 5)
    assert loaded.description.fixed_batch is None
    assert loaded.provider == "CPUExecutionProvider"
    assert loaded.versions.keys() == {"numpy", "onnx", "onnxruntime"}
    assert "20 rows" in loaded.output.inferred


def test_probabilities_are_read_before_their_softmax(pool, tmp_path):
    trial = {"left": rows(9), "right": rows(9, seed=2)}
    loaded = inspect(pool, save(tmp_path, softmax_of_two(weights())), trial)
    assert (loaded.output.name, loaded.output.tensor, loaded.output.kind) == ("y", "z", "logits")


def test_the_caller_may_choose_the_output(pool, tmp_path):
    files = save(tmp_path, linear())
    assert inspect(pool, files, output={"name": "y", "kind": "logits"}).output.name == "y"
    with pytest.raises(InvalidConfig) as caught:
        inspect(pool, files, output={"name": "z"})
    assert caught.value.violations[0].location == "config.output.name"


def test_events_that_are_certain_are_omitted(pool, tmp_path):
    loaded = inspect(pool, save(tmp_path, linear(weights(4))), top_k=(1, 3, 4, 5))
    assert loaded.top_k == (1, 3)


def test_a_single_array_may_be_called_inputs(pool, tmp_path):
    assert inspect(pool, save(tmp_path, linear()), {"inputs": rows(5)}).n_classes == 10


def test_external_weights_come_from_the_companion(pool, tmp_path):
    files = with_external_weights(tmp_path, weights(200))
    loaded = inspect(pool, files)
    assert loaded.description.external_files == ("model.onnx.data",)
    assert loaded.n_classes == 200
    with pytest.raises(InvalidOnnxModel, match=r"model\.onnx\.data"):
        inspect(pool, OnnxModelFiles(files.path))


def test_bytes_that_are_no_model_are_refused(pool, tmp_path):
    with pytest.raises(InvalidOnnxModel) as caught:
        inspect(pool, save(tmp_path, b"garbage" * 100))
    assert caught.value.violations[0].location == "model"


def test_the_message_of_the_runtime_is_not_passed_on(pool, tmp_path):
    with pytest.raises(InvalidOnnxModel) as caught:
        inspect(pool, save(tmp_path, of_rows(node("MatMul", ["x", "absent"], ["y"]))))
    message = caught.value.message
    assert message.startswith("model: ONNX Runtime cannot load it: a node,")
    for hidden in ("onnxruntime/", "ONNXRuntimeError", str(tmp_path), "absent"):
        assert hidden not in message


@pytest.mark.parametrize(
    ("trial", "location", "words"),
    [
        ({"x": rows(5)[:, 1:]}, "calibration.x", r"\[rows, 6\], got \[5, 5\]"),
        ({"x": rows(5)[:, 0]}, "calibration.x", r"\[rows, 6\], got \[5\]"),
        ({"y": rows(5)}, "calibration.y", "'x'"),
        ({"x": rows(5), "y": rows(5)}, "calibration.y", "'x'"),
    ],
)
def test_rows_that_do_not_fit_the_inputs_are_named(pool, tmp_path, trial, location, words):
    with pytest.raises(InvalidDataset, match=words) as caught:
        inspect(pool, save(tmp_path, linear()), trial)
    assert caught.value.violations[0].location == location


def test_a_model_with_too_many_classes_is_refused(tmp_path):
    with RunnerPool(
        device="cpu", threads=1, max_classes=9, start_child=SERVER.start_child
    ) as small:
        with pytest.raises(TooLarge, match="at most 9 classes, got 10"):
            inspect(small, save(tmp_path, linear()))
        assert inspect(small, save(tmp_path, linear(weights(9)))).n_classes == 9


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            of_rows(node("ReduceMax", ["x"], ["y"], axes=[0], keepdims=1)),
            "one row per sample",
        ),
        (
            # As a batch normalisation that was exported in training mode does.
            of_rows(
                node("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=1),
                node("Sub", ["x", "mean"], ["centred"]),
                node("MatMul", ["centred", "w"], ["y"]),
                w=weights(),
            ),
            "changes with the rows beside it",
        ),
    ],
)
def test_a_model_that_mixes_rows_is_refused(pool, tmp_path, model, words):
    with pytest.raises(InvalidOnnxModel, match=words):
        inspect(pool, save(tmp_path, model))


def test_only_rows_with_finite_outputs_decide_what_the_output_is(pool, tmp_path):
    trial = {"x": rows(3)}
    trial["x"][1] = np.nan
    assert inspect(pool, save(tmp_path, linear()), trial).n_classes == 10
    with pytest.raises(InvalidOnnxModel, match="not finite"):
        inspect(pool, save(tmp_path, linear()), {"x": np.full((3, N_FEATURES), np.nan)})


def test_a_missing_file_is_reported_without_its_path(pool, tmp_path):
    with pytest.raises(InferenceFailed) as caught:
        inspect(pool, OnnxModelFiles(tmp_path / "absent.onnx"))
    assert str(tmp_path) not in caught.value.message
