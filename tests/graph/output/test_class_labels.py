"""Labels of classes that the graph itself holds."""

import numpy as np
import pytest
from graph_models import FLOAT, constant, make_model, node, steps, value
from onnx import TensorProto, numpy_helper

from service.graph.describe import class_labels

INT64, STRING = TensorProto.INT64, TensorProto.STRING


def classifier(outputs, operator="LinearClassifier", **attributes):
    return node(operator, ["x"], outputs, domain="ai.onnx.ml", **attributes)


def labels_of(*nodes, label_type=INT64, initializers=()):
    outputs = [value("label", ["N"], label_type), value("scores", ["N", 2])]
    return class_labels(make_model(nodes, outputs=outputs, initializers=initializers).graph)


CLASSIFIERS = [
    ("LinearClassifier", {"classlabels_ints": [3, 9]}, (3, 9)),
    ("LinearClassifier", {"classlabels_strings": ["kö", "b"]}, ("kö", "b")),
    # Text that is not UTF-8 is kept legible.
    ("LinearClassifier", {"classlabels_strings": [b"\xff", b"ok"]}, ("�", "ok")),
    ("SVMClassifier", {"classlabels_ints": [0, 1]}, (0, 1)),
    ("TreeEnsembleClassifier", {"classlabels_int64s": [5, 4]}, (5, 4)),
    ("TreeEnsembleClassifier", {"classlabels_strings": ["b", "a"]}, ("b", "a")),
    ("LinearClassifier", {}, None),
]


@pytest.mark.parametrize(("operator", "attributes", "labels"), CLASSIFIERS)
def test_labels_come_in_the_order_of_the_columns(operator, attributes, labels):
    assert labels_of(classifier(["label", "scores"], operator=operator, **attributes)) == labels


def test_classifiers_that_disagree_or_stand_further_in_say_nothing():
    one = classifier(["label", "a"], classlabels_ints=[0, 1])
    assert labels_of(one, classifier(["b", "scores"], classlabels_ints=[1, 0])) is None
    inner = classifier(["a", "b"], classlabels_ints=[0, 1])
    assert labels_of(inner, *steps("scores = Softmax(b); label = ArgMax<axis=1>(scores)")) is None


WORDS = numpy_helper.from_array(np.array(["a", "b"], dtype=object), "classes")
BROKEN = TensorProto(name="classes", data_type=INT64, dims=[3], raw_data=b"12345")


TABLES = [
    *((constant("classes", [7, 5], dtype), INT64, (7, 5)) for dtype in (np.int64, np.int32)),
    (WORDS, STRING, ("a", "b")),
    (constant("classes", [0.5, 1.5]), FLOAT, None),
    (BROKEN, INT64, None),
]


@pytest.mark.parametrize(("table", "label_type", "labels"), TABLES)
def test_the_table_behind_an_argmax_holds_the_labels(table, label_type, labels):
    nodes = steps(
        "scores = Identity(x); index = ArgMax<axis=1>(scores);"
        "looked = ai.onnx.ml.ArrayFeatureExtractor(classes, index); label = Reshape(looked, shape)"
    )
    initializers = [table, constant("shape", [-1], np.int64)]
    assert labels_of(*nodes, label_type=label_type, initializers=initializers) == labels
