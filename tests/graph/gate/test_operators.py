"""Operators that ONNX Runtime brings are allowed, others wherever they are refused."""

import re
from pathlib import Path

import pytest
from graph_models import make_model, node
from hostile_models import branch, calling, classifier, function, in_branch
from onnx import helper

import service
from service.errors import InvalidOnnxModel, ModelRule
from service.graph.gate.rules import check_operators

WITHIN = function("f", node("Identity", ["a"], ["b"]))


ALLOWED = [
    *(
        make_model([node("Some", ["x"], ["y"], domain=domain)])
        for domain in ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
    ),
    calling(WITHIN),
    # ONNX Runtime imports all domains that it knows in the files that it writes.
    classifier(opset_imports=[helper.make_opsetid("com.microsoft.nchwc", 1)]),
]


@pytest.mark.parametrize("model", ALLOWED)
def test_operators_and_functions_that_are_allowed(model):
    check_operators(model)


OTHERS = [
    *("elsewhere.Some", "ai.onnx.preview.training.Adam", "ai.onnx.contrib.BertTokenizer"),
    *("org.pytorch.aten.ATen", "com.microsoft.nchwc.Conv", "com.microsoft.EPContext"),
    *("AI.ONNX.Add", "own.g"),
]


def in_default(hidden):
    own = function("f", node("Identity", ["a"], ["b"]))
    own.attribute_proto.append(helper.make_attribute("given", branch(hidden)))
    return calling(own)


PLACES = {
    "graph": classifier,
    "function": lambda hidden: calling(function("f", hidden)),
    "default": in_default,
    "branch": lambda hidden: in_branch(branch(node("Identity", ["z"], ["b"])), branch(hidden)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("operator", OTHERS)
def test_others_are_refused_wherever_they_are(operator, place):
    domain, _, name = operator.rpartition(".")
    model = PLACES[place](node(name, ["z"], ["b"], domain=domain))
    with pytest.raises(InvalidOnnxModel, match=f"'{operator}'") as caught:
        check_operators(model)
    assert caught.value.violations[0].rule is ModelRule.OPERATOR_NOT_ALLOWED


# Each refusal of a model has a stable name.
SOURCES = "".join(path.read_text("utf-8") for path in Path(service.__file__).parent.rglob("*.py"))


def test_no_model_is_refused_without_a_rule() -> None:
    nameless = r"(?s)(?<!class )InvalidOnnxModel(?:\(|\.at\((?!.{0,120}\brule=))"
    assert re.findall(nameless, SOURCES) == []


def test_every_rule_refuses_something() -> None:
    assert [rule for rule in ModelRule if f"ModelRule.{rule.name}" not in SOURCES] == []
