import pytest
from graph_models import FLOAT, constant, make_model, node, passthrough, value
from onnx import TensorProto, helper

from service.errors import InvalidOnnxModel
from service.graph.describe import describe_onnx_model
from service.graph.description import TensorSpec


def map_output(name):
    scores = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(FLOAT, ()))
    return helper.make_value_info(name, helper.make_sequence_type_proto(scores))


def test_interface_and_versions_are_read():
    model = make_model(
        [node("MatMul", ["images", "w"], ["scores"]), node("ArgMax", ["scores"], ["label"])],
        inputs=[value("images", ["N", 3]), value("w", [3, 2])],
        outputs=[value("scores", [None, 2]), value("label", None, TensorProto.INT64)],
        initializers=[constant("w", [[1, 2]] * 3)],
        opset=18,
        ir_version=9,
    )
    description = describe_onnx_model(model)
    assert description.inputs == (TensorSpec("images", "float32", (None, 3)),)
    assert description.outputs == (
        TensorSpec("scores", "float32", (None, 2)),
        TensorSpec("label", "int64", None),
    )
    assert (description.opset, description.ir_version) == (18, 9)
    assert description.class_labels is None
    assert description.external_files == ()
    assert description.fixed_batch is None


@pytest.mark.parametrize(
    ("element_type", "name"),
    [
        (TensorProto.BFLOAT16, "bfloat16"),
        (TensorProto.DOUBLE, "float64"),
        (999, "unknown"),
    ],
)
def test_types_are_numpys_names(element_type, name):
    model = make_model(
        [node("Identity", ["x"], ["y"])], outputs=[value("y", ["N", 2], element_type)]
    )
    assert describe_onnx_model(model).outputs[0].dtype == name


def test_what_is_no_tensor_is_named_so():
    model = make_model([node("Identity", ["x"], ["y"])], outputs=[map_output("y"), value("z")])
    assert describe_onnx_model(model).outputs[0] == TensorSpec("y", "sequence", None)


def test_free_dimensions_are_those_without_a_positive_size():
    model = passthrough(shape=["N", None, 0, -1, 4])
    assert describe_onnx_model(model).inputs[0].shape == (None, None, None, None, 4)


@pytest.mark.parametrize(
    ("first", "second", "batch"),
    [(8, 8, 8), (1, 1, 1), ("N", "N", None), (4, None, 4)],
)
def test_a_batch_is_fixed_by_any_input(first, second, batch):
    assert describe_onnx_model(of_two_inputs(first, second)).fixed_batch == batch


def of_two_inputs(first, second):
    nodes = [node("Add", ["a", "b"], ["y"])]
    return make_model(nodes, inputs=[value("a", [first, 4]), value("b", [second, 4])])


def test_inputs_may_not_differ_in_their_fixed_batch():
    with pytest.raises(InvalidOnnxModel, match="different numbers of rows"):
        describe_onnx_model(of_two_inputs(4, 1))


def test_an_input_with_a_default_is_none():
    weights = {"inputs": [value("w", [1])], "initializers": [constant("w", [1])]}
    with pytest.raises(InvalidOnnxModel, match="no input"):
        describe_onnx_model(make_model([node("Identity", ["w"], ["y"])], **weights))
