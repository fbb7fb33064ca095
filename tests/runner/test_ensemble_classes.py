"""Members of an ensemble whose files name their classes."""

import numpy as np
import pytest
from graph_models import make_model, value
from onnx import TensorProto, helper
from runner_models import save

from service.errors import InvalidOnnxModel
from service.runner.messages.onnx_models import OnnxMember, OnnxModelFiles
from service.runner.messages.passes import PassPlan

X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
ENSEMBLE = PassPlan("ensemble_variance", passes=20, seed=0)


def classifier(labels, seed):
    """Return a linear model as scikit-learn's exporter writes it."""
    kind = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_ints"
    weights = np.random.default_rng(seed).normal(size=4 * len(labels))
    node = helper.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "p"],
        domain="ai.onnx.ml",
        coefficients=weights.tolist(),
        intercepts=[0.0] * len(labels),
        post_transform="SOFTMAX",
        multi_class=0,
        **{kind: labels},
    )
    of_label = TensorProto.STRING if kind == "classlabels_strings" else TensorProto.INT64
    outputs = [value("label", ("N",), of_label), value("p", ("N", len(labels)))]
    return make_model([node], inputs=[value("x", ("N", 4))], outputs=outputs)


def inspect(pool, folder, *labels):
    files = [
        save(folder, classifier(own, seed), name=f"{seed}.onnx") for seed, own in enumerate(labels)
    ]
    members = tuple(OnnxMember(other.path) for other in files[1:])
    together = OnnxModelFiles(files[0].path, members=members)
    return pool.inspect(together, top_k=(1,), passes=(ENSEMBLE,), trial={"x": X})


@pytest.mark.parametrize("other", [["b", "c", "d"], ["c", "b", "a"]])
def test_members_that_name_other_classes(pool, tmp_path, other):
    with pytest.raises(InvalidOnnxModel, match="in the same order") as raised:
        inspect(pool, tmp_path, ["a", "b", "c"], ["a", "b", "c"], other)
    assert raised.value.violations[0].location == "model[2]"


@pytest.mark.parametrize("other", [["a", "b", "c"], [0, 1, 2]])
def test_members_that_name_the_same_or_number_them(pool, tmp_path, other):
    assert inspect(pool, tmp_path, ["a", "b", "c"], other).n_classes == 3
