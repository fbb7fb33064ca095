import numpy as np
import pytest
from graph_models import (
    OPSETS,
    constant,
    make_model,
    node,
    opsets,
    passthrough,
    reference,
    serve,
    value,
)
from onnx import helper

from service.errors import InvalidOnnxModel
from service.graph.gate.versions import MAX_IR_VERSION, MAX_OPSET, default_opset
from service.graph.load import load_onnx_model

LOGITS = (3 * np.random.default_rng(0).normal(size=(12, 6))).astype(np.float32)


PASSTHROUGH = passthrough().SerializeToString()


NOT_ONNX = "not an ONNX model"
OTHERS = {
    "empty": (b"", NOT_ONNX),
    "zero": (b"\x00", NOT_ONNX),
    "zip": (b"PK\x03\x04 a zip file", NOT_ONNX),
    "json": (b"{}", NOT_ONNX),
    "pickle": (b"\x80\x04pickle", NOT_ONNX),
    "version alone": (b"\x08\x08", NOT_ONNX),
    "10 % of a file": (PASSTHROUGH[: len(PASSTHROUGH) // 10], None),
    "half a file": (PASSTHROUGH[: len(PASSTHROUGH) // 2], None),
    "90 % of a file": (PASSTHROUGH[: len(PASSTHROUGH) * 9 // 10], None),
    "a name that is no text": (
        PASSTHROUGH.replace(b"\x12\x01y", b"\x12\x01\xff"),
        r"b'\\xff' is not text",
    ),
    # Newer versions are refused with the newest that runs.
    "opset 27": (passthrough(opset=MAX_OPSET + 1).SerializeToString(), "opsets up to 26"),
    "opset 999": (passthrough(opset=999).SerializeToString(), "opsets up to 26"),
    "IR 14": (
        passthrough(ir_version=MAX_IR_VERSION + 1).SerializeToString(),
        r"IR version 14.*up to 13",
    ),
}


@pytest.mark.parametrize(("data", "message"), OTHERS.values(), ids=OTHERS)
def test_other_files_and_newer_ones_are_refused(data, message):
    with pytest.raises(InvalidOnnxModel, match=message):
        load_onnx_model(data)


def test_remarks_need_not_be_text():
    model = passthrough()
    model.doc_string = "remark"
    load_onnx_model(model.SerializeToString().replace(b"remark", b"rem\xffrk"))


@pytest.mark.parametrize("opset", opsets(*OPSETS))
def test_supported_opsets_are_kept(opset):
    assert default_opset(load_onnx_model(passthrough(opset=opset).SerializeToString())) == opset


@pytest.mark.parametrize("opset", [0, 10])
def test_an_older_opset_whose_operators_changed_is_refused(opset):
    # Softmax flattened its input then, Gemm wanted a bias.
    model = make_model([node("Gemm", ["x", "x"], ["y"])], opset=opset)
    with pytest.raises(InvalidOnnxModel, match="opset 11 or newer is needed; re-export or convert"):
        load_onnx_model(model.SerializeToString())


def test_an_older_opset_whose_operators_are_the_same_is_raised():
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Cast", ["m"], ["y"], to=1)]
    model = make_model(nodes, initializers=[constant("w", np.eye(6))], opset=9, ir_version=4)
    assert default_opset(load_onnx_model(model.SerializeToString())) == 11
    served = serve(model, {"x": LOGITS})
    np.testing.assert_allclose(served["entropy"], reference(LOGITS)[2]["entropy"], rtol=1e-4)


def test_a_changed_operator_inside_a_branch_keeps_an_older_opset_from_being_raised():
    then = helper.make_graph([node("Gemm", ["x", "x"], ["a"])], "then", [], [value("a")])
    other = helper.make_graph([node("Identity", ["x"], ["b"])], "else", [], [value("b")])
    model = make_model(
        [node("If", ["flag"], ["y"], then_branch=then, else_branch=other)],
        initializers=[constant("flag", True, np.bool_)],
        opset=10,
    )
    with pytest.raises(InvalidOnnxModel, match="opset 11"):
        load_onnx_model(model.SerializeToString())


@pytest.mark.parametrize("entries", [[("", 17), ("", 17)], [("", 9), ("", 17)], [("ai.onnx", 17)]])
def test_the_default_domain_is_left_once(entries):
    model = passthrough()
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*entry) for entry in entries)
    loaded = load_onnx_model(model.SerializeToString())
    assert [(entry.domain, entry.version) for entry in loaded.opset_import] == [("", 17)]


def test_a_model_without_standard_operators_gets_a_default_opset():
    model = make_model(
        [node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", scale=[1.0], offset=[0.0])]
    )
    del model.opset_import[0]
    served = serve(model, {"x": LOGITS})
    np.testing.assert_allclose(served["margin"], reference(LOGITS)[2]["margin"], rtol=1e-4)
