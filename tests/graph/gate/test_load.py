"""Which files are models, their versions, and their names beside the head's."""

import numpy as np
import pytest
from graph_models import (
    LOGITS,
    OPSETS,
    branched,
    constant,
    load,
    make_model,
    opsets,
    passthrough,
    reference,
    run_session,
    serve,
    steps,
    value,
)
from onnx import helper

from service.errors import InvalidOnnxModel
from service.graph.gate.versions import MAX_IR_VERSION, MAX_OPSET, default_opset

PASSTHROUGH = passthrough().SerializeToString()
EYE = np.eye(6)
IN_BRANCH = make_model(branched(steps("a = Gemm(x, x)"), "x", "y"), opset=10)
REFUSED = {
    "empty": (b"", "not an ONNX model"),
    "zero": (b"\x00", "not an ONNX model"),
    "zip": (b"PK\x03\x04 a zip file", "not an ONNX model"),
    "json": (b"{}", "not an ONNX model"),
    "pickle": (b"\x80\x04pickle", "not an ONNX model"),
    "version alone": (b"\x08\x08", "not an ONNX model"),
    **{f"{n} tenths": (PASSTHROUGH[: len(PASSTHROUGH) * n // 10], "^model") for n in (1, 5, 9)},
    "a name that is no text": (PASSTHROUGH.replace(b"\x12\x01y", b"\x12\x01\xff"), r"b'\\xff'"),
    # Newer versions are refused with the newest that runs.
    "opset 27": (passthrough(opset=MAX_OPSET + 1), "26"),
    "opset 999": (passthrough(opset=999), "26"),
    "IR 14": (passthrough(ir_version=MAX_IR_VERSION + 1), "14.*13"),
    # The converter knows opset 7 to 10, and no branches; Gemm wanted a bias then.
    "changed operator": (make_model(steps("y = Gemm(x, x)"), opset=6), "opset 11"),
    "no opset": (make_model(steps("y = Gemm(x, x)"), opset=0), "opset 11"),
    "changed operator inside a branch": (IN_BRANCH, "opset 11"),
}


@pytest.mark.parametrize(("data", "named"), REFUSED.values(), ids=REFUSED)
def test_other_files_and_versions_are_refused(data, named):
    with pytest.raises(InvalidOnnxModel, match=named):
        load(data)


@pytest.mark.parametrize("opset", opsets(*OPSETS))
def test_supported_opsets_are_kept(opset):
    assert default_opset(load(passthrough(opset=opset))) == opset


def test_an_older_opset_whose_operators_are_the_same_is_raised():
    nodes = steps("m = MatMul(x, w); y = Cast<to=1>(m)")
    model = make_model(nodes, initializers=[constant("w", EYE)], opset=9, ir_version=4)
    assert default_opset(load(model)) == 11
    served = serve(model, {"x": LOGITS})
    np.testing.assert_allclose(served["entropy"], reference(LOGITS)[2]["entropy"], rtol=1e-4)


@pytest.mark.parametrize("opset", [7, 8, 9, 10])
def test_an_old_opset_is_converted_and_answers_as_the_file(opset):
    """Clip, Gemm and Softmax changed on the way to opset 11."""
    nodes = steps("c = Clip<min=-2.0, max=2.0>(x); z = Gemm(c, w, b); y = Softmax<axis=1>(z)")
    parameters = [constant("w", EYE), constant("b", np.zeros(6))]
    model = make_model(nodes, initializers=parameters, opset=opset)
    largest = run_session(model, {"x": LOGITS})["y"].max(axis=1)
    found = serve(model, {"x": LOGITS})["neg_log_pmax"]
    np.testing.assert_allclose(found, -np.log(largest), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("entries", [[("", 17), ("", 17)], [("", 9), ("", 17)], [("ai.onnx", 17)]])
def test_the_default_domain_is_left_once(entries):
    model = passthrough(doc_string="remark")
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*entry) for entry in entries)
    data = model.SerializeToString().replace(b"remark", b"rem\xffrk")  # need not be text
    assert [(entry.domain, entry.version) for entry in load(data).opset_import] == [("", 17)]


def test_a_model_without_standard_operators_gets_a_default_opset():
    model = make_model(steps("y = ai.onnx.ml.Scaler<scale=[1.0], offset=[0.0]>(x)"))
    del model.opset_import[0]
    served = serve(model, {"x": LOGITS})
    np.testing.assert_allclose(served["margin"], reference(LOGITS)[2]["margin"], rtol=1e-4)


BODY = steps("howsure_entropy = Add(howsure_z, howsure_b); a = Identity(howsure_entropy)")
BIAS = [constant("howsure_b", np.zeros(6))]


def test_a_models_own_names_do_not_meet_the_heads():
    nodes = [
        *steps("howsure_z = MatMul(x, howsure_n1)"),
        *branched(BODY, "howsure_z", "howsure_top_classes", initializers=BIAS),
        *steps("howsure_n2 = Identity(howsure_top_classes)"),
        helper.make_node("Identity", ["howsure_n2"], ["user.howsure_n2"]),
        helper.make_node("Identity", ["user.howsure_n2"], ["howsure_entropy"]),
    ]
    ends = {"outputs": [value("howsure_entropy")], "initializers": [constant("howsure_n1", EYE)]}
    served = serve(make_model(nodes, **ends), {"x": LOGITS})
    for column, expected in reference(LOGITS)[2].items():
        np.testing.assert_allclose(served[column], expected, rtol=1e-4)
