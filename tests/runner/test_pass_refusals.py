"""Models that the measures of several runs cannot be made for."""

import numpy as np
import pytest
from graph_models import constant, make_model, node, value
from onnx import TensorProto, helper
from runner_models import PASSES_FOLDER, digits_model, of_rows, save

from service.errors import InvalidConfig, InvalidOnnxModel, ModelRule, TooLarge
from service.runner.messages.onnx_models import OnnxMember, OnnxModelFiles
from service.runner.messages.passes import PassPlan

X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
DIGITS = np.load(PASSES_FOLDER / "digits_passes.npz")["evaluation_inputs"][:100]
TOKENS = np.load(PASSES_FOLDER / "sequences.npz")["evaluation_inputs"]
ENSEMBLE = PassPlan("ensemble_variance", passes=20, seed=0)
GRADIENT = PassPlan("gradient_norm", passes=16, seed=0, step=1e-3)


MEMBERS = ["member_0", "member_1"]


@pytest.mark.parametrize(
    ("names", "plan", "trial", "error", "words"),
    [
        (["small_cnn"], ENSEMBLE, DIGITS, InvalidConfig, "several"),
        (["member_0", "member_0"], ENSEMBLE, DIGITS, InvalidConfig, "answer alike"),
        (["sequence_dropout"], GRADIENT, TOKENS, InvalidConfig, "int64"),
        ([*MEMBERS, "member_other_classes"], ENSEMBLE, DIGITS, InvalidOnnxModel, r"\[2\].* 9 "),
        ([*MEMBERS, "member_other_input"], ENSEMBLE, DIGITS, InvalidOnnxModel, r"\[2\].*inputs"),
    ],
)
def test_models_that_do_not_suit_the_measure(pool, names, plan, trial, error, words):
    with pytest.raises(error, match=words):
        pool.inspect(digits_model(*names), top_k=(1,), passes=(plan,), trial={"inputs": trial})


def ensemble(folder, models):
    files = [save(folder, model, name=f"{i}.onnx") for i, model in enumerate(models)]
    return OnnxModelFiles(files[0].path, members=tuple(OnnxMember(f.path) for f in files[1:]))


def classifier(labels, seed):
    """Return a linear model as scikit-learn's exporter writes it."""
    is_named, n_classes = isinstance(labels[0], str), len(labels)
    linear = helper.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "p"],
        domain="ai.onnx.ml",
        coefficients=np.random.default_rng(seed).normal(size=4 * n_classes).tolist(),
        intercepts=[0.0] * n_classes,
        post_transform="SOFTMAX",
        multi_class=0,
        **{"classlabels_strings" if is_named else "classlabels_ints": labels},
    )
    of_label = TensorProto.STRING if is_named else TensorProto.INT64
    outputs = [value("label", ("N",), of_label), value("p", ("N", n_classes))]
    return make_model([linear], inputs=[value("x", ("N", 4))], outputs=outputs)


@pytest.mark.parametrize(
    ("last", "is_taken"),
    [
        (["a", "b", "c"], True),
        ([0, 1, 2], True),
        (["b", "c", "d"], False),
        (["c", "b", "a"], False),
    ],
)
def test_members_name_the_same_classes_in_the_same_order_or_number_them(
    pool, tmp_path, last, is_taken
):
    labels = [["a", "b", "c"], ["a", "b", "c"], last]
    files = ensemble(tmp_path, [classifier(own, seed) for seed, own in enumerate(labels)])
    options = {"top_k": (1,), "passes": (ENSEMBLE,), "trial": {"x": X}}
    if is_taken:
        assert pool.inspect(files, **options).n_classes == 3
        return
    with pytest.raises(InvalidOnnxModel, match=r"model\[2\]") as refused:
        pool.inspect(files, **options)
    assert refused.value.violations[0].rule is ModelRule.MEMBERS_DIFFER


def drawing(scale, *, seed=0, reads="moved"):
    """Return a model that adds noise to its rows, and computes its scores from ``reads``."""
    nodes = [
        node("RandomNormalLike", ["x"], ["noise"], scale=scale),
        node("Add", ["x", "noise"], ["moved"]),
        node("MatMul", [reads, "W"], ["y"]),
    ]
    weights = np.random.default_rng(seed).normal(size=(4, 3))
    return make_model(
        nodes,
        inputs=[value("x", ("N", 4))],
        outputs=[value("y", ("N", 3)), value("moved", ("N", 4))],
        initializers=[constant("W", weights)],
    )


def inspect_drawing(pool, files, **options):
    return pool.inspect(files, output={"name": "y"}, top_k=(1,), trial={"inputs": X}, **options)


@pytest.mark.parametrize("measure", [None, "last_layer_dropout_variance", "gradient_norm"])
def test_a_model_that_draws_at_random_needs_the_mean_of_several_runs(pool, tmp_path, measure):
    plans = [] if measure is None else [PassPlan(measure, passes=4, seed=0, step=1e-3)]
    with pytest.raises(InvalidOnnxModel, match="ensemble_variance"):
        inspect_drawing(pool, save(tmp_path, drawing(1e-3)), passes=plans)


def test_a_member_that_draws_at_random_is_named_and_other_draws_are_allowed(pool, tmp_path):
    files = ensemble(tmp_path, [drawing(1e-3, seed=seed) for seed in range(2)])
    with pytest.raises(InvalidOnnxModel, match=r"model\[0\].*random"):
        inspect_drawing(pool, files)
    beside = save(tmp_path, drawing(1.0, reads="x"), name="beside.onnx")
    assert inspect_drawing(pool, beside).n_classes == 3


@pytest.mark.parametrize(
    ("side", "passes", "words"), [(200, 60, "34 passes"), (1000, 2, "left out")]
)
def test_last_layers_with_too_many_features_for_their_masks(pool, tmp_path, side, passes, words):
    n_channels = 24
    model = of_rows(
        node("Tile", ["x", "times"], ["wide"]),
        node("Conv", ["wide", "kernel"], ["maps"]),
        node("ReduceMean", ["maps"], ["y"], axes=[2, 3], keepdims=0),
        shape=("N", 1, 1, 1),
        times=[1, n_channels, side, side],
        kernel=np.random.default_rng(0).normal(size=(3, n_channels, 1, 1)),
    )
    plan = PassPlan("last_layer_dropout_variance", passes=passes, seed=0)
    trial = {"x": X[:3, 0].reshape(3, 1, 1, 1)}
    with pytest.raises(TooLarge, match=words) as raised:
        pool.inspect(save(tmp_path, model), top_k=(1,), passes=(plan,), trial=trial)
    assert raised.value.violations[0].location == "config.dropout.passes"
