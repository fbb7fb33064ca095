"""What is found when a model is loaded and tried on the first rows of a set."""

from types import SimpleNamespace

import numpy as np
import pytest
from forked_children import SERVER
from graph_models import make_model, node, steps
from onnx import TensorProto, helper
from runner_models import N_FEATURES, linear, of_rows, rows, save, weights

from service.calibrations.upload.onnx_model import _model_failures_as_invalid
from service.child.onnx.onnx_file import serialised
from service.errors import (
    InferenceFailed,
    InvalidConfig,
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
    (spec,) = loaded.description.inputs
    assert (spec.name, spec.dtype, spec.shape) == ("x", "float32", (None, N_FEATURES))
    assert (loaded.output.name, loaded.output.kind, loaded.n_classes) == ("y", "logits", 10)
    assert (loaded.top_k, loaded.description.fixed_batch) == ((1, 5), None)
    assert loaded.provider == "CPUExecutionProvider"
    assert loaded.versions.keys() == {"numpy", "onnx", "onnxruntime"}
    assert "20 rows" in loaded.output.inferred
    with pytest.raises(InvalidConfig) as refused:  # the caller may choose the output
        inspect(pool, files, output_name="z")
    assert refused.value.violations[0].location == "config.output.name"
    # Events that are certain are omitted.
    few_classes = save(tmp_path, linear(weights(4)), name="few.onnx")
    assert inspect(pool, few_classes, top_k=(1, 3, 4, 5)).top_k == (1, 3)


def test_neither_the_runtime_s_message_nor_a_path_is_passed_on(pool, tmp_path):
    wrong = save(tmp_path, of_rows(node("MatMul", ["x", "absent"], ["y"])))
    missing = OnnxModelFiles(tmp_path / "gone.onnx")
    for files, error in [(wrong, InvalidOnnxModel), (missing, InferenceFailed)]:
        with pytest.raises(error) as refused:
            inspect(pool, files)
        for hidden in ("onnxruntime/", "ONNXRuntimeError", str(tmp_path), "absent"):
            assert hidden not in refused.value.message


@pytest.mark.process
def test_a_model_with_too_many_classes_is_refused(tmp_path):
    options = {"device": "cpu", "threads": 1, "max_classes": 9}
    with RunnerPool(**options, start_child=SERVER.start_child) as small:
        with pytest.raises(TooLarge, match=r"9 .* 10"):
            inspect(small, save(tmp_path, linear()))
        assert inspect(small, save(tmp_path, linear(weights(9)))).n_classes == 9


def test_only_rows_with_finite_outputs_decide_what_the_output_is(pool, tmp_path):
    trial = {"x": rows(3)}
    trial["x"][1] = np.nan
    assert inspect(pool, save(tmp_path, linear()), trial).n_classes == 10
    with pytest.raises(InvalidOnnxModel, match="not finite"):
        inspect(pool, save(tmp_path, linear()), {"x": np.full((3, N_FEATURES), np.nan)})


def of_another_opset():
    """Return a model with a function of an older opset, which cannot be inlined."""
    softmax = helper.make_function(
        "own", "f", ["a"], ["b"], [node("Softmax", ["a"], ["b"])], [helper.make_opsetid("", 9)]
    )
    own = helper.make_opsetid("own", 1)
    call = node("f", ["x"], ["y"], domain="own")
    return make_model([call], functions=[softmax], opset_imports=[own])


def too_large_for_one_file():
    raise ValueError("more than 2 GiB")


def test_the_broken_rule_is_named(pool, tmp_path):
    with pytest.raises(InvalidOnnxModel) as refused:
        inline_functions(of_another_opset())
    assert refused.value.violations[0].rule is ModelRule.FUNCTION_NOT_INLINED
    with pytest.raises(InvalidOnnxModel) as refused:
        serialised(SimpleNamespace(SerializeToString=too_large_for_one_file))
    assert refused.value.violations[0].rule is ModelRule.FILE_TOO_LARGE
    with pytest.raises(InvalidOnnxModel) as refused, _model_failures_as_invalid():
        raise OnnxModelCrashed("It died.")
    assert refused.value.violations[0].rule is ModelRule.CRASHED
    # ONNX Runtime lacks an operator for this type.
    whole = f"whole = Cast<to = {TensorProto.INT16}>(x); positive = Relu(whole)"
    floats = f"f = Cast<to = {TensorProto.FLOAT}>(positive); y = MatMul(f, w)"
    unsupported = of_rows(*steps(f"{whole}; {floats}"), w=weights())
    with pytest.raises(InvalidOnnxModel) as refused:
        inspect(pool, save(tmp_path, unsupported))
    assert refused.value.violations[0].rule is ModelRule.NOT_IMPLEMENTED
