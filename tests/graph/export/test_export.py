"""The one file of model and tables: its outputs, names, versions, metadata and size."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from calibrated_files import Model, assert_answers, calibrate, direct_model, write
from classifier_files import FILES
from graph_models import FLOAT, constant, make_model, passthrough, steps, value
from onnx import TensorProto, helper

from service.graph.export import build_export_graph

LOGITS = (3 * np.random.default_rng(0).normal(size=(1000, 10))).astype(np.float32)
ROWS = {"x": LOGITS}
INT64, BOOL = TensorProto.INT64, TensorProto.BOOL
Y = {"said": {"name": "y"}}


def declared(graph):
    """Return type and shape of each output of ours."""
    kinds = {output.name: output.type.tensor_type for output in graph.graph.output[1:]}
    return {
        name: (kind.elem_type, [dim.dim_value or dim.dim_param for dim in kind.shape.dim])
        for name, kind in kinds.items()
    }


def event_outputs(k):
    names = ("probability", "lower", "upper", "uncertainty")
    return {f"top{k}_{name}": (FLOAT, ["N"]) for name in names} | {f"top{k}_bin": (INT64, ["N"])}


FLAGS = ("out_of_distribution", "abstain", "abstain_0.05", "abstain_0.01")


def test_the_outputs_their_order_types_and_shapes():
    file = calibrate(passthrough(shape=("N", 10)), ROWS)
    expected = {"class": (INT64, ["N"]), "topk_class": (INT64, ["N", 5])}
    expected |= dict.fromkeys(("topk_score", "topk_probability"), (FLOAT, ["N", 5]))
    expected |= event_outputs(1) | event_outputs(5) | dict.fromkeys(FLAGS, (BOOL, ["N"]))
    assert list(declared(file.graph).items()) == list(expected.items())
    assert_answers(file, {"x": LOGITS[:1]})
    assert {len(values) for values in file.answer({"x": LOGITS[:0]}).values()} == {0}


def test_what_is_not_there_has_no_outputs():
    file = calibrate(passthrough(), ROWS, columns={3: "entropy"})  # nothing is flagged
    names = {"class", "topk_class", "topk_score", *event_outputs(3)}
    assert declared(file.graph).keys() == names
    assert_answers(file, ROWS)
    file = calibrate(passthrough(), ROWS, ood_threshold=None, accept_thresholds=())
    assert not {*FLAGS} & declared(file.graph).keys()


def test_abstain_is_that_of_the_first_risk():
    risks = (("0.2", None), ("0.1", 0.5), ("0.05", 0.25))
    answers = assert_answers(calibrate(passthrough(), ROWS, accept_thresholds=risks), ROWS)
    assert answers["abstain"].all()
    np.testing.assert_array_equal(answers["abstain"], answers["abstain_0.2"])
    assert 0 < answers["abstain_0.1"].sum() < answers["abstain_0.05"].sum() < len(LOGITS)


@pytest.mark.parametrize("threshold", [0.1 + 0.2, 1.0, np.inf])
def test_a_threshold_lies_within(threshold):
    """As float32, which may be more or less; nothing finite lies beyond infinity."""
    rows = {"x": LOGITS, "u": np.linspace(0, 2, 1000, dtype=np.float32)}
    options = {"columns": {1: "output_v"}, "ood_threshold": threshold}
    file = calibrate(direct_model(10), rows, **options, **Y)
    at = np.float32(threshold)
    rows["u"][:4] = [at, np.nextafter(at, np.float32(np.inf)), np.nextafter(at, 0), np.nan]
    is_endless = threshold == np.inf  # so is the row on it
    flags = assert_answers(file, rows)["out_of_distribution"]
    np.testing.assert_array_equal(flags[:4], [is_endless, True, False, True])


# Weights are inputs too.
IR_3 = {"inputs": [value("w", (1, 1)), value("x", ("n_images", 10))], "ir_version": 3}
OF_IR_3 = make_model(steps("y = Mul(x, w)"), initializers=[constant("w", [[2.0]])], **IR_3)
BATCH_NAMES = [
    *((passthrough(shape=(name, 10)), name or "N") for name in (None, 1000)),
    (OF_IR_3, "n_images"),
]


@pytest.mark.parametrize(("model", "expected"), BATCH_NAMES)
def test_rows_are_called_as_the_model_calls_them(model, expected):
    assert declared(calibrate(model, ROWS).graph)["class"] == (INT64, [expected])


def test_what_float32_cannot_hold_is_in_no_bin():
    rows = {"x": LOGITS.astype(np.float64)}
    model = passthrough(element_type=TensorProto.DOUBLE)
    file = calibrate(model, rows, columns={1: "energy", 5: "entropy"})
    rows["x"][3] *= 1e200
    answers = assert_answers(file, rows)
    assert answers["top1_bin"][3] == answers["top5_bin"][3] == answers["class"][3] == -1
    assert (answers["top1_bin"] == -1).sum() == 1


def test_the_head_is_the_one_that_served():
    """A refit may leave out a k, which the head still ranks: the bits depend on it."""
    rows = {"x": (2 * np.random.default_rng(1).normal(size=(5000, 40))).astype(np.float32)}
    both = calibrate(passthrough(), rows, columns={1: "entropy", 20: "neg_log_topk_mass_20"})
    alone = write(both.model, both.choice, {1: both.tables[1]}, {1: "entropy"}, top_k=(1, 20))
    entropy = both.serve(rows)["howsure_entropy"]
    np.testing.assert_array_equal(alone.answer(rows)["top1_uncertainty"], entropy)


@pytest.mark.parametrize("name", ["torch 17, softmax", "1000 classes, opset 11"])
def test_a_file_grows_by_less_than_20_kb_at_100_bins_and_two_events(name):
    file = FILES[name]()
    calibrated = calibrate(Model(file.data), file.draw(1000), n_bins=100)
    assert [table.n_bins for table in calibrated.tables.values()] == [100, 100]
    assert len(calibrated.graph.SerializeToString()) - len(file.data) < 20_000


@pytest.mark.parametrize(
    ("opset", "ir_version", "expected"), [(11, 3, 3), (17, 13, 10), (23, 13, 11), (26, 13, 13)]
)
def test_the_ir_version_is_one_that_most_runtimes_read_unless_the_model_needs_a_newer(
    opset, ir_version, expected
):
    file = calibrate(passthrough(opset=opset, ir_version=ir_version), ROWS, n_bins=3)
    assert file.graph.ir_version == expected
    model = passthrough(ir_version=13)
    model.configuration.add(name="two devices", num_devices=2)
    assert build_export_graph(model, file.choice, file.spec, {}).ir_version == 13


def metadata(graph):
    return {entry.key: entry.value for entry in graph.metadata_props}


def test_metadata_come_back_from_a_session():
    model = passthrough()
    helper.set_model_props(model, {"author": "someone", "howsure.name": "an older calibration"})
    ours = {"howsure.calibration": "an id", "howsure.classes": json.dumps(["naïve", "日本", "c"])}
    content = calibrate(model, ROWS, metadata=ours).graph.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    expected = {"author": "someone", **ours, "howsure.prefix": ""}
    assert session.get_modelmeta().custom_metadata_map == expected


NAMES_OF_OURS = [
    ("inner = Identity(class); y = Neg(inner)", "class"),
    ("top5_lower = Identity(x); y = Neg(top5_lower)", "x"),
    ("abstain = Abs(x); y = Identity(abstain)", "x"),
]


@pytest.mark.parametrize(("text", "x"), NAMES_OF_OURS)
def test_one_name_of_ours_in_the_model_puts_a_prefix_before_all(text, x):
    outputs = [value("y"), *([value("abstain")] if "abstain" in text else [])]
    file = calibrate(make_model(steps(text), inputs=[value(x)], outputs=outputs), {x: LOGITS}, **Y)
    added = file.graph.graph.output[len(outputs) :]
    assert all(output.name.startswith("howsure_") for output in added)
    answers = assert_answers(file, {x: LOGITS}, prefix="howsure_")
    assert answers["abstain"].dtype == np.bool_


def test_a_calibrated_file_can_be_calibrated_again_and_again():
    model, prefixes, names = passthrough(shape=("N", 10)), [], ["y"]
    for n_bins in (50, 20, 10):
        file = calibrate(model, ROWS, n_bins=n_bins, **Y)
        model, before = file.graph, names
        names = [output.name for output in model.graph.output]
        assert names[: len(before)] == before
        prefixes.append(metadata(model)["howsure.prefix"])
        onnx.checker.check_model(model, full_check=True)
    assert prefixes == ["", "howsure_", "howsure_2_"]
    assert_answers(file, ROWS, prefix="howsure_2_")
    assert [file.answer(ROWS)[f"{prefix}top1_bin"].max() for prefix in prefixes] == [49, 19, 9]
