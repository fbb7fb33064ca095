"""What is found when a model is loaded and tried on the first rows of a set."""

from types import SimpleNamespace

import numpy as np
import pytest
from forked_children import SERVER
from graph_models import make_model, node
from onnx import TensorProto, helper
from runner_models import (
    N_FEATURES,
    linear,
    of_rows,
    rows,
    save,
    weights,
)

from service.calibrations.onnx_model import _model_failures_as_invalid
from service.child.onnx.onnx_file import serialised
from service.errors import (
    InferenceFailed,
    InvalidConfig,
    InvalidDataset,
    InvalidOnnxModel,
    ModelRule,
    OnnxModelCrashed,
    TooLarge,
)
from service.graph.inline import inline_functions
from service.runner.messages.onnx_models import OnnxModelFiles
from service.runner.pool import RunnerPool


def inspect(pool, files, trial=None, *, top_k=(1, 5), **options):
    trial = {"x": rows(20)} if trial is None else trial
    return pool.inspect(files, top_k=top_k, trial=trial, **options)


def test_a_model_is_described(pool, tmp_path):
    files = save(tmp_path, linear())
    loaded = inspect(pool, files, {"inputs": rows(20)})
    assert [(t.name, t.dtype, t.shape) for t in loaded.description.inputs] == [
        ("x", "float32", (None, N_FEATURES))
    ]
    assert (loaded.output.name, loaded.output.kind, loaded.n_classes) == ("y", "logits", 10)
    assert (loaded.top_k, loaded.description.fixed_batch) == ((1, 5), None)
    assert loaded.provider == "CPUExecutionProvider"
    assert loaded.versions.keys() == {"numpy", "onnx", "onnxruntime"}
    assert "20 rows" in loaded.output.inferred
    with pytest.raises(InvalidConfig) as refused:  # the caller may choose the output
        inspect(pool, files, output={"name": "z"})
    assert refused.value.violations[0].location == "config.output.name"


def test_events_that_are_certain_are_omitted(pool, tmp_path):
    loaded = inspect(pool, save(tmp_path, linear(weights(4))), top_k=(1, 3, 4, 5))
    assert loaded.top_k == (1, 3)


def test_the_message_of_the_runtime_is_not_passed_on(pool, tmp_path):
    with pytest.raises(InvalidOnnxModel) as refused:
        inspect(pool, save(tmp_path, of_rows(node("MatMul", ["x", "absent"], ["y"]))))
    assert refused.value.message.startswith("model: ")
    for hidden in ("onnxruntime/", "ONNXRuntimeError", str(tmp_path), "absent"):
        assert hidden not in refused.value.message


def test_rows_that_do_not_fit_the_inputs_are_named(pool, tmp_path):
    with pytest.raises(InvalidDataset, match=r"\[rows, 6\], got \[5, 5\]") as refused:
        inspect(pool, save(tmp_path, linear()), {"x": rows(5)[:, 1:]})
    assert refused.value.violations[0].location == "calibration.x"


@pytest.mark.process
def test_a_model_with_too_many_classes_is_refused(tmp_path):
    options = {"device": "cpu", "threads": 1, "max_classes": 9}
    with RunnerPool(**options, start_child=SERVER.start_child) as small:
        with pytest.raises(TooLarge, match=r"9 .* 10"):
            inspect(small, save(tmp_path, linear()))
        assert inspect(small, save(tmp_path, linear(weights(9)))).n_classes == 9


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            of_rows(node("ReduceMax", ["x"], ["y"], axes=[0], keepdims=1)),
            "per sample",
        ),
        (
            # As a batch normalisation that was exported in training mode does.
            of_rows(
                node("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=1),
                node("Sub", ["x", "mean"], ["centred"]),
                node("MatMul", ["centred", "w"], ["y"]),
                w=weights(),
            ),
            "rows beside it",
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


def of_another_opset():
    """Return a model with a function of an older opset, which cannot be inlined."""
    softmax = helper.make_function(
        "own", "f", ["a"], ["b"], [node("Softmax", ["a"], ["b"])], [helper.make_opsetid("", 9)]
    )
    call = node("f", ["x"], ["y"], domain="own")
    own = helper.make_opsetid("own", 1)
    return make_model([call], functions=[softmax], opset_imports=[own])


def of_an_unsupported_type():
    """Return a model with an operator that ONNX Runtime does not have for this type."""
    return of_rows(
        node("Cast", ["x"], ["whole"], to=TensorProto.INT16),
        node("Relu", ["whole"], ["positive"]),
        node("Cast", ["positive"], ["f"], to=TensorProto.FLOAT),
        node("MatMul", ["f", "w"], ["y"]),
        w=weights(),
    )


def too_large_for_one_file(*_):
    def fail():
        raise ValueError("more than 2 GiB")

    serialised(SimpleNamespace(SerializeToString=fail))


def crashed(*_):
    with _model_failures_as_invalid():
        raise OnnxModelCrashed("It died.")


@pytest.mark.parametrize(
    ("attempt", "rule"),
    [
        (lambda *_: inline_functions(of_another_opset()), ModelRule.FUNCTION_NOT_INLINED),
        (
            lambda pool, folder: inspect(pool, save(folder, of_an_unsupported_type())),
            ModelRule.NOT_IMPLEMENTED,
        ),
        (too_large_for_one_file, ModelRule.FILE_TOO_LARGE),
        (crashed, ModelRule.CRASHED),
    ],
    ids=lambda found: str(found) if isinstance(found, ModelRule) else "",
)
def test_the_broken_rule_is_named(pool, tmp_path, attempt, rule):
    with pytest.raises(InvalidOnnxModel) as refused:
        attempt(pool, tmp_path)
    assert refused.value.violations[0].rule is rule
