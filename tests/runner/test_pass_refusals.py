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


@pytest.mark.parametrize(
    ("names", "plan", "trial", "error", "words"),
    [
        (["small_cnn"], ENSEMBLE, DIGITS, InvalidConfig, "several"),
        (["member_0", "member_0"], ENSEMBLE, DIGITS, InvalidConfig, "answer alike"),
        (["sequence_dropout"], GRADIENT, TOKENS, InvalidConfig, "int64"),
        (
            ["member_0", "member_1", "member_other_classes"],
            ENSEMBLE,
            DIGITS,
            InvalidOnnxModel,
            r"model\[2\].*9 where the first has 10",
        ),
        (
            ["member_0", "member_1", "member_other_input"],
            ENSEMBLE,
            DIGITS,
            InvalidOnnxModel,
            r"model\[2\].*take the same inputs",
        ),
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
    kind = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_ints"
    weights = np.random.default_rng(seed).normal(size=4 * len(labels))
    linear = helper.make_node(
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
    return make_model([linear], inputs=[value("x", ("N", 4))], outputs=outputs)


def inspect_members(pool, folder, *labels):
    files = ensemble(folder, [classifier(own, seed) for seed, own in enumerate(labels)])
    return pool.inspect(files, top_k=(1,), passes=(ENSEMBLE,), trial={"x": X})


@pytest.mark.parametrize("other", [["b", "c", "d"], ["c", "b", "a"]])
def test_members_that_name_other_classes_are_refused(pool, tmp_path, other):
    with pytest.raises(InvalidOnnxModel, match=r"model\[2\].*in the same order") as refused:
        inspect_members(pool, tmp_path, ["a", "b", "c"], ["a", "b", "c"], other)
    assert refused.value.violations[0].rule is ModelRule.MEMBERS_DIFFER


@pytest.mark.parametrize("other", [["a", "b", "c"], [0, 1, 2]])
def test_members_that_name_the_same_classes_or_number_them_are_taken(pool, tmp_path, other):
    assert inspect_members(pool, tmp_path, ["a", "b", "c"], other).n_classes == 3


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


@pytest.mark.parametrize("measure", [None, "last_layer_dropout_variance", "gradient_norm"])
def test_a_model_that_draws_at_random_needs_the_mean_of_several_runs(pool, tmp_path, measure):
    plans = [] if measure is None else [PassPlan(measure, passes=4, seed=0, step=1e-3)]
    with pytest.raises(InvalidOnnxModel, match="ask for ensemble_variance"):
        pool.inspect(
            save(tmp_path, drawing(1e-3)),
            output={"name": "y"},
            top_k=(1,),
            passes=plans,
            trial={"inputs": X},
        )


def test_a_member_that_draws_at_random_is_named(pool, tmp_path):
    files = ensemble(tmp_path, [drawing(1e-3, seed=seed) for seed in range(2)])
    with pytest.raises(InvalidOnnxModel, match=r"model\[0\].*draws at random"):
        pool.inspect(files, output={"name": "y"}, top_k=(1,), trial={"inputs": X})


def test_random_numbers_beside_the_scores_are_allowed(pool, tmp_path):
    files = save(tmp_path, drawing(1.0, reads="x"))
    found = pool.inspect(files, output={"name": "y"}, top_k=(1,), trial={"inputs": X})
    assert found.n_classes == 3


@pytest.mark.parametrize(
    ("side", "passes", "words"), [(200, 60, "at most 34 passes"), (1000, 2, "to be left out")]
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
