import pytest
from graph_models import make_model, node
from hostile_models import branch, calling, classifier, function, in_branch
from onnx import helper

from service.errors import InvalidOnnxModel, ModelRule
from service.graph.gate.rules import check_operators


@pytest.mark.parametrize("domain", ["", "ai.onnx", "ai.onnx.ml", "com.microsoft"])
def test_operators_that_onnx_runtime_brings_are_allowed(domain):
    check_operators(make_model([node("Some", ["x"], ["y"], domain=domain)]))


def test_functions_of_the_file_are_allowed():
    check_operators(calling(function("f", node("Identity", ["a"], ["b"]))))


def test_imports_alone_are_no_reason():
    # ONNX Runtime lists all domains that it knows in the files that it writes.
    check_operators(classifier(opset_imports=[helper.make_opsetid("com.microsoft.nchwc", 1)]))


@pytest.mark.parametrize(
    ("domain", "operator"),
    [
        ("elsewhere", "Some"),
        ("ai.onnx.preview.training", "Adam"),
        ("ai.onnx.contrib", "BertTokenizer"),
        ("org.pytorch.aten", "ATen"),
        ("com.microsoft.nchwc", "Conv"),
        ("com.microsoft", "EPContext"),
        ("AI.ONNX", "Add"),
        ("own", "g"),
    ],
)
@pytest.mark.parametrize("place", ["graph", "branch", "function", "default"])
def test_others_are_refused_wherever_they_are(domain, operator, place):
    hidden = node(operator, ["z"], ["b"], domain=domain)
    within = function("f", node("Identity", ["a"], ["b"]))
    model = calling(within)
    if place == "graph":
        model.graph.node.append(hidden)
    elif place == "branch":
        model = in_branch(branch(node("Identity", ["z"], ["b"])), branch(hidden))
    elif place == "function":
        model.functions[0].node.append(hidden)
    else:
        default = helper.make_attribute("given", branch(hidden))
        model.functions[0].attribute_proto.append(default)
    with pytest.raises(InvalidOnnxModel, match=f"'{domain}.{operator}' is not allowed") as caught:
        check_operators(model)
    assert caught.value.violations[0].rule is ModelRule.OPERATOR_NOT_ALLOWED
