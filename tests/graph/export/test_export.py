"""The one file of model and tables: its outputs, versions and size."""

from pathlib import Path

import numpy as np
import pytest
from calibrated_files import Model, assert_answers, calibrate, direct_model, write
from classifier_files import FILES
from graph_models import FLOAT, constant, make_model, node, passthrough, value
from onnx import TensorProto

from service.graph.export import build_export_graph

PASSES = Path(__file__).parents[2] / "data" / "passes"
LOGITS = (3 * np.random.default_rng(0).normal(size=(4000, 10))).astype(np.float32)
ROWS = {"x": LOGITS}
INT64, BOOL = TensorProto.INT64, TensorProto.BOOL


def declared(graph):
    return {
        output.name: (
            output.type.tensor_type.elem_type,
            [dim.dim_value or dim.dim_param for dim in output.type.tensor_type.shape.dim],
        )
        for output in graph.graph.output[1:]
    }


def event_outputs(k, rows="N"):
    names = ("probability", "lower", "upper", "uncertainty")
    return {f"top{k}_{name}": (FLOAT, [rows]) for name in names} | {f"top{k}_bin": (INT64, [rows])}


def test_the_outputs_their_order_types_and_shapes():
    file = calibrate(passthrough(shape=("N", 10)), ROWS)
    assert list(declared(file.graph).items()) == list(
        (
            {
                "class": (INT64, ["N"]),
                "topk_class": (INT64, ["N", 5]),
                "topk_score": (FLOAT, ["N", 5]),
                "topk_probability": (FLOAT, ["N", 5]),
            }
            | event_outputs(1)
            | event_outputs(5)
            | dict.fromkeys(
                ("out_of_distribution", "abstain", "abstain_0.05", "abstain_0.01"), (BOOL, ["N"])
            )
        ).items()
    )


def test_without_top_1_nothing_is_flagged():
    file = calibrate(passthrough(), ROWS, columns={3: "entropy"})
    names = {"class", "topk_class", "topk_score", *event_outputs(3)}
    assert declared(file.graph).keys() == names
    assert_answers(file, ROWS)


def test_without_thresholds_there_are_no_flags():
    file = calibrate(passthrough(), ROWS, ood_threshold=None, accept_thresholds=())
    assert not {"out_of_distribution", "abstain"} & declared(file.graph).keys()


def test_abstain_is_that_of_the_first_risk():
    risks = (("0.2", None), ("0.1", 0.5), ("0.05", 0.25))
    answers = assert_answers(calibrate(passthrough(), ROWS, accept_thresholds=risks), ROWS)
    assert answers["abstain"].all()
    np.testing.assert_array_equal(answers["abstain"], answers["abstain_0.2"])
    assert 0 < answers["abstain_0.1"].sum() < answers["abstain_0.05"].sum() < len(LOGITS)


@pytest.mark.parametrize("threshold", [0.1 + 0.2, 1.0, np.inf])
def test_a_threshold_lies_within(threshold):
    """As float32, which may be more or less; nothing finite lies beyond infinity."""
    rows = {"x": LOGITS[:1000], "u": np.linspace(0, 2, 1000, dtype=np.float32)}
    file = calibrate(
        direct_model(10),
        rows,
        columns={1: "output_v"},
        said={"name": "y"},
        ood_threshold=threshold,
    )
    at = np.float32(threshold)
    rows["u"][:4] = [at, np.nextafter(at, np.float32(np.inf)), np.nextafter(at, 0), np.nan]
    is_endless = threshold == np.inf  # so is the row on it
    flags = assert_answers(file, rows)["out_of_distribution"]
    np.testing.assert_array_equal(flags[:4], [is_endless, True, False, True])


def test_rows_are_called_as_the_model_calls_them():
    shapes = {"batch": "batch", None: "N", 4000: 4000}
    for size, expected in shapes.items():
        file = calibrate(passthrough(shape=(size, 10)), ROWS)
        assert declared(file.graph)["class"] == (INT64, [expected])
    default = make_model(  # of IR 3: weights are inputs too
        [node("Mul", ["x", "w"], ["y"])],
        inputs=[value("w", (1, 1)), value("x", ("n_images", 10))],
        initializers=[constant("w", [[2.0]])],
        ir_version=3,
    )
    assert declared(calibrate(default, ROWS).graph)["top1_bin"] == (INT64, ["n_images"])


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
    rng = np.random.default_rng(1)
    rows = {"x": (2 * rng.normal(size=(5000, 40))).astype(np.float32)}
    both = calibrate(passthrough(), rows, columns={1: "entropy", 20: "neg_log_topk_mass_20"})
    alone = write(both.model, both.choice, {1: both.tables[1]}, {1: "entropy"}, top_k=(1, 20))
    np.testing.assert_array_equal(
        alone.answer(rows)["top1_uncertainty"], both.serve(rows)["howsure_entropy"]
    )


@pytest.mark.parametrize(
    "name", ["torch 17, softmax", "sklearn, network", "1000 classes, opset 11"]
)
def test_a_file_grows_by_less_than_20_kb_at_100_bins_and_two_events(name):
    file = FILES[name]()
    calibrated = calibrate(Model(file.data), file.draw(5000), n_bins=100)
    assert [table.n_bins for table in calibrated.tables.values()] == [100, 100]
    assert len(calibrated.graph.SerializeToString()) - len(file.data) < 20_000


@pytest.mark.parametrize(
    ("opset", "ir_version", "expected"),
    [(11, 3, 3), (17, 13, 10), (23, 13, 11), (26, 13, 13)],
)
def test_the_ir_version_is_one_that_most_runtimes_read(opset, ir_version, expected):
    file = calibrate(passthrough(opset=opset, ir_version=ir_version), ROWS, n_bins=3)
    assert file.graph.ir_version == expected


def test_what_needs_a_newer_ir_version_keeps_it():
    model = passthrough(ir_version=13)
    model.configuration.add(name="two devices", num_devices=2)
    choice = Model(passthrough().SerializeToString()).choose(ROWS)
    spec = calibrate(passthrough(), ROWS, n_bins=3).spec
    assert build_export_graph(model, choice, spec, {}).ir_version == 13


def test_a_file_answers_one_row_and_none():
    file = calibrate(passthrough(), ROWS)
    assert_answers(file, {"x": LOGITS[:1]})
    answers = file.answer({"x": LOGITS[:0]})
    assert {len(values) for values in answers.values()} == {0}
