"""Versions, operators, functions and graphs that are not to be run, or cannot."""

from itertools import pairwise

import numpy as np
import pytest
from graph_models import constant, make_model, node, value
from hostile_models import ModelCase, assert_told, calling, delimited, function, good
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper
from runner_models import N_FEATURES, classifier, function_bomb

NOT_ALLOWED = "operator-not-allowed"


def versions(*, opset=17, ir_version=8):
    model = good()
    model.ir_version = ir_version
    model.opset_import.add(domain="", version=opset)
    return model


def elsewhere(op_type="Spawn", domain="elsewhere", **others):
    imports = [helper.make_opsetid("elsewhere", 1)]
    call = node(op_type, ["z"], ["y"], domain=domain, **others)
    return lambda: classifier(call, opset_imports=imports)


def function_calls_itself():
    call = node("f", ["a"], ["m"], domain="own")
    return calling(function("f", call, node("Identity", ["m"], ["b"])))


def chain(length):
    """Return a model of so many nodes, written without the library: that takes far longer."""
    model = good()
    model.graph.output[0].name = f"t{length}"
    names = ["y", *(f"t{index}" for index in range(1, length + 1))]
    nodes = (
        delimited(1, read.encode()) + delimited(2, made.encode()) + delimited(4, b"Neg")
        for read, made in pairwise(names)
    )
    data = b"".join(delimited(1, content) for content in nodes)
    return model.SerializeToString() + delimited(7, data)


def sparse_beyond_its_shape():
    sparse = SparseTensorProto(dims=[10])
    sparse.values.CopyFrom(constant("bias", [1.0]))
    sparse.indices.CopyFrom(constant("at", [10**9], np.int64))
    model = classifier(node("Add", ["z", "bias"], ["y"]))
    model.graph.sparse_initializer.append(sparse)
    return model


def integers_by_zero():
    return classifier(
        node("Cast", ["z"], ["i"], to=TensorProto.INT32),
        node("Sub", ["i", "i"], ["nil"]),
        node("Div", ["i", "nil"], ["q"]),
        node("Cast", ["q"], ["y"], to=TensorProto.FLOAT),
    )


def convolution_without_a_stride():
    return classifier(
        node("Unsqueeze", ["z", "axes"], ["image"]),
        node("Conv", ["image", "kernel"], ["c"], strides=[0, 0]),
        node("Squeeze", ["c", "one"], ["y"]),
        constants={"axes": [1, 3], "one": [1], "kernel": np.ones((1, 1, 1, 1))},
    )


def forest_beyond_its_nodes():
    return ml(
        "TreeEnsembleClassifier",
        ["label", "y"],
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values=[0.0, 0.0, 0.0],
        nodes_truenodeids=[10**6, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        class_treeids=[0, 0],
        class_nodeids=[1, 2],
        class_ids=[0, 1],
        class_weights=[1.0, 1.0],
        classlabels_int64s=[0, 1],
    )


def ml(operator, outputs, **attributes):
    return make_model(
        [node(operator, ["x"], outputs, domain="ai.onnx.ml", **attributes)],
        inputs=[value("x", ("N", N_FEATURES))],
        outputs=[value("y", ("N", None))],
    )


def features(index):
    model = ml("ArrayFeatureExtractor", ["y"])
    model.graph.node[0].input.append("index")
    model.graph.initializer.append(constant("index", [index], np.int64))
    return model


def words():
    tensor = numpy_helper.from_array(np.array(["word" * 100] * 5000, dtype=object), "words")
    return classifier(
        node("Identity", ["words"], ["same"]),
        node("Cast", ["same"], ["numbers"], to=TensorProto.FLOAT),
        node("ReduceSum", ["numbers"], ["sum"], keepdims=0),
        node("Add", ["z", "sum"], ["y"]),
        initializers=[tensor],
    )


# It loads, and takes no rows: it cannot be told whether the rows are to blame.
ROWS = {"code": "invalid-dataset", "says": "calibration"}
CUT_SHORT = ("LinearClassifier", ["l", "y"])
ONE_WEIGHT = {"coefficients": [1.0], "classlabels_ints": [0, 1, 2]}
NEGATED = node("Neg", ["z"], ["y"])
CYCLE = [node("Add", ["z", "q"], ["y"]), node("Neg", ["y"], ["q"])]
EP_CONTEXT = elsewhere("EPContext", "com.microsoft", embed_mode=0, ep_cache_context="../x.so")
CASES = [
    ModelCase("opset_0", lambda: versions(opset=0), "opset-too-old", says="11"),
    ModelCase("ir_999", lambda: versions(ir_version=999), "ir-too-new", says="13"),
    ModelCase("opset_999", lambda: versions(opset=999), "opset-too-new", says="26"),
    ModelCase("operator_of_somebody", elsewhere(), NOT_ALLOWED, says="elsewhere.Spawn"),
    ModelCase("ep_context", EP_CONTEXT, NOT_ALLOWED, says="EPContext"),
    ModelCase("function_bomb", lambda: function_bomb(30), "too-many-nodes", says="50000"),
    ModelCase("function_calls_itself", function_calls_itself, "function-calls-itself"),
    ModelCase("chain_of_200k_nodes", lambda: chain(200_000), "too-many-nodes"),
    ModelCase("names_twice", lambda: classifier(NEGATED, NEGATED), "name-twice"),
    ModelCase("cycle", lambda: classifier(*CYCLE), "not-loaded"),
    ModelCase("sparse_beyond_its_shape", sparse_beyond_its_shape, "not-loaded"),
    ModelCase("integers_by_zero", integers_by_zero, "run-failed", **ROWS),
    ModelCase("convolution_without_a_stride", convolution_without_a_stride, "not-loaded"),
    ModelCase("forest_beyond_its_nodes", forest_beyond_its_nodes, "not-loaded"),
    ModelCase("feature_before_the_first", lambda: features(-(10**9)), "run-failed", **ROWS),
    ModelCase("linear_classifier_cut_short", lambda: ml(*CUT_SHORT, **ONE_WEIGHT), "not-loaded"),
    ModelCase("two_megabytes_of_words", words, "run-failed", **ROWS),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_refused(hostile, case: ModelCase) -> None:
    assert_told(hostile, case)
