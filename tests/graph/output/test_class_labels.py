import numpy as np
import pytest
from graph_models import FLOAT, constant, make_model, node, value
from onnx import TensorProto, helper, numpy_helper

from service.graph.describe import class_labels

INT64, STRING = TensorProto.INT64, TensorProto.STRING


def classifier(outputs, *, operator="LinearClassifier", **attributes):
    return helper.make_node(operator, ["x"], outputs, domain="ai.onnx.ml", **attributes)


def labels_of(nodes, outputs, initializers=()):
    return class_labels(make_model(nodes, outputs=outputs, initializers=initializers).graph)


OUTPUTS = [value("label", ["N"], INT64), value("scores", ["N", 2])]


@pytest.mark.parametrize(
    ("operator", "attributes", "labels"),
    [
        ("LinearClassifier", {"classlabels_ints": [3, 9]}, (3, 9)),
        ("LinearClassifier", {"classlabels_strings": ["kö", "b"]}, ("kö", "b")),
        # Text that is not UTF-8 is kept legible.
        ("LinearClassifier", {"classlabels_strings": [b"\xff", b"ok"]}, ("�", "ok")),
        ("SVMClassifier", {"classlabels_ints": [0, 1]}, (0, 1)),
        ("TreeEnsembleClassifier", {"classlabels_int64s": [5, 4]}, (5, 4)),
        ("TreeEnsembleClassifier", {"classlabels_strings": ["b", "a"]}, ("b", "a")),
        ("LinearClassifier", {}, None),
    ],
)
def test_labels_come_in_the_order_of_the_columns(operator, attributes, labels):
    nodes = [classifier(["label", "scores"], operator=operator, **attributes)]
    assert labels_of(nodes, OUTPUTS) == labels


def test_classifiers_that_disagree_say_nothing():
    nodes = [
        classifier(["label", "a"], classlabels_ints=[0, 1]),
        classifier(["b", "scores"], classlabels_ints=[1, 0]),
    ]
    assert labels_of(nodes, OUTPUTS) is None


def test_classifiers_further_in_are_not_asked():
    nodes = [
        classifier(["a", "b"], classlabels_ints=[0, 1]),
        node("Softmax", ["b"], ["scores"]),
        node("ArgMax", ["scores"], ["label"], axis=1),
    ]
    assert labels_of(nodes, OUTPUTS) is None


def looked_up(table, output_type):
    nodes = [
        node("Identity", ["x"], ["scores"]),
        node("ArgMax", ["scores"], ["index"], axis=1),
        helper.make_node(
            "ArrayFeatureExtractor", ["classes", "index"], ["looked"], domain="ai.onnx.ml"
        ),
        node("Reshape", ["looked", "shape"], ["label"]),
    ]
    outputs = [value("label", ["N"], output_type), value("scores", ["N", 2])]
    return labels_of(nodes, outputs, [table, constant("shape", [-1], np.int64)])


def test_the_table_behind_an_argmax_holds_the_labels():
    assert looked_up(constant("classes", [7, 5], np.int64), INT64) == (7, 5)
    assert looked_up(constant("classes", [7, 5], np.int32), INT64) == (7, 5)
    words = numpy_helper.from_array(np.array(["a", "b"], dtype=object), "classes")
    assert looked_up(words, STRING) == ("a", "b")


def test_a_table_of_other_things_does_not():
    assert looked_up(constant("classes", [0.5, 1.5]), FLOAT) is None
    broken = TensorProto(name="classes", data_type=INT64, dims=[3], raw_data=b"12345")
    assert looked_up(broken, INT64) is None
