"""Measures of several runs for unusual models, and models that they cannot be made for."""

import numpy as np
import pytest
from graph_models import dropout, make_model, node, steps, value
from onnx import TensorProto, helper
from runner_models import PASSES_FOLDER, digits_model, mean_of_vectors, of_rows, save
from scipy.special import softmax

from howsure.bins_document.pass_plan import PassPlan
from service.errors import InvalidConfig, InvalidOnnxModel, ModelRule, TooLarge
from service.runner.messages.onnx_models import OnnxMember, OnnxModelFiles

N_VALUES, N_CLASSES = 4, 3
WEIGHTS = np.random.default_rng(0).normal(size=(N_VALUES, N_CLASSES)).astype(np.float32)
DIGITS = np.load(PASSES_FOLDER / "digits_passes.npz")["evaluation_inputs"][:100]
TOKENS = np.load(PASSES_FOLDER / "sequences.npz")["evaluation_inputs"]
GRADIENT = PassPlan("gradient_norm", passes=16, seed=0, step=1e-3)
ENSEMBLE = PassPlan("ensemble_variance", passes=20, seed=0)


def normal(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def inspect(pool, files, measure, x, **options):
    plan = PassPlan(measure, **{"passes": 6, "seed": 0} | options)
    return pool.inspect(files, top_k=(1,), passes=(plan,), trial={"x": x})


def of_values(*nodes, batch="N", **constants):
    """Return a model of rows of a few values, and the weights w."""
    return of_rows(*nodes, shape=(batch, N_VALUES), w=WEIGHTS, **constants)


def sequences_first(batch, length, *, merged=False):
    """Return a model that drops from its rows with time on the axis before them.

    ``merged`` makes one axis of time and rows for the dropout alone.
    """
    drops = dropout("turned", "apart", 0.5)
    if merged:
        before = steps("shape = Shape(turned); one = Reshape(turned, flat)")
        drops = [*before, *dropout("one", "kept", 0.5), *steps("apart = Reshape(kept, shape)")]
    mean = "waves = Sin(apart); mean = ReduceMean<axes = [0], keepdims = 0>(waves)"
    return of_rows(
        *steps("turned = Transpose<perm = [1, 0, 2]>(x)"),
        *drops,
        *steps(f"{mean}; y = MatMul(mean, w)"),
        shape=(batch, length, N_VALUES),
        w=WEIGHTS,
        flat=[-1, N_VALUES],
    )


def drawing(shape):
    noise = f"noise = RandomNormal<shape = {shape}>()"
    text = f"{noise}; moved = Add(x, noise); waves = Sin(moved); y = MatMul(waves, w)"
    return of_values(*steps(text), batch=8)


DROPPED_WEIGHTS = of_values(
    *dropout("w", "kept", 0.5), node("MatMul", ["x", "kept"], ["y"]), batch=8
)
# Whether the rows of a batch can share the noise.
LAYOUTS = [
    (sequences_first(8, 16), (16, N_VALUES), "dropout_variance", False),
    (sequences_first("N", 5, merged=True), (5, N_VALUES), "dropout_variance", False),
    (sequences_first(8, 5, merged=True), (5, N_VALUES), "dropout_variance", False),
    (drawing([8, N_VALUES]), (N_VALUES,), "ensemble_variance", False),
    (sequences_first(8, 5), (5, N_VALUES), "dropout_variance", True),
    (sequences_first("N", 16), (16, N_VALUES), "dropout_variance", True),
    (drawing([1, N_VALUES]), (N_VALUES,), "ensemble_variance", True),
    (DROPPED_WEIGHTS, (N_VALUES,), "dropout_variance", True),
]


@pytest.mark.parametrize(("model", "shape", "measure", "is_shared"), LAYOUTS)
def test_a_place_in_a_batch_changes_no_value(pool, tmp_path, model, shape, measure, is_shared):
    x, files = normal(40, *shape), save(tmp_path, model)
    if not is_shared:
        with pytest.raises(InvalidOnnxModel, match="one row"):
            inspect(pool, files, measure, x)
        return
    resolved = inspect(pool, files, measure, x).resolved
    whole = pool.predict(files, resolved, {"x": x}).uncertainty[measure]
    order = np.random.default_rng(2).permutation(len(x))
    moved = pool.predict(files, resolved, {"x": x[order]}).uncertainty[measure]
    np.testing.assert_allclose(moved, whole[order], atol=1e-6 * whole.max())


def exact_norms(x):
    """Return ``||d ||p||_2 / dx||_2`` of `mean_of_vectors` by hand."""
    p = softmax(x.astype(float).mean(axis=1) @ WEIGHTS, axis=1)
    norm = np.sqrt((p**2).sum(axis=1, keepdims=True))
    of_mean = (p * (p - norm**2) / norm) @ WEIGHTS.T
    return np.linalg.norm(of_mean, axis=1) / np.sqrt(x.shape[1])


@pytest.mark.parametrize(("planned", "length"), [(20, 16), (16, 20), (16, 3)])
def test_gradients_of_text_of_another_length_than_the_trial_rows(pool, tmp_path, planned, length):
    files = save(tmp_path, mean_of_vectors(WEIGHTS))
    trial = normal(20, planned, N_VALUES)
    resolved = inspect(pool, files, "gradient_norm", trial, passes=64, step=1e-3).resolved
    x = normal(30, length, N_VALUES, seed=2)
    norms = pool.predict(files, resolved, {"x": x}).uncertainty["gradient_norm"]
    ratio = norms / exact_norms(x)
    assert np.all((ratio > 0.6) & (ratio < 1.5))
    records = pool.record(files, resolved, {"x": x}, np.zeros(30, np.int64), seed=0)
    np.testing.assert_allclose(records.uncertainty["gradient_norm"], norms, rtol=1e-3)


@pytest.mark.parametrize("directions", [2, 16])
def test_missing_values_do_not_count_in_the_scale_of_a_step(pool, tmp_path, directions):
    text = "missing = IsNaN(x); known = Where(missing, nothing, x); y = MatMul(known, w)"
    model = of_values(*steps(text), nothing=0.0)
    x, files = normal(50, N_VALUES), save(tmp_path, model)
    x[::3, ::2], x[1::3, 1::2] = np.nan, np.nan
    loaded = inspect(pool, files, "gradient_norm", x, passes=directions, step=1e-3)
    np.testing.assert_allclose(loaded.passes[0].scales["x"], 1, atol=0.5)
    norms = pool.predict(files, loaded.resolved, {"x": x}).uncertainty["gradient_norm"]
    assert (norms > 0).all()


MEMBERS = ["member_0", "member_1"]


UNSUITED = [
    (["small_cnn"], ENSEMBLE, DIGITS, InvalidConfig, "several"),
    (["member_0", "member_0"], ENSEMBLE, DIGITS, InvalidConfig, "answer alike"),
    (["sequence_dropout"], GRADIENT, TOKENS, InvalidConfig, "int64"),
    ([*MEMBERS, "member_other_classes"], ENSEMBLE, DIGITS, InvalidOnnxModel, r"\[2\].* 9 "),
    ([*MEMBERS, "member_other_input"], ENSEMBLE, DIGITS, InvalidOnnxModel, r"\[2\].*inputs"),
]


@pytest.mark.parametrize(("names", "plan", "trial", "error", "words"), UNSUITED)
def test_models_that_do_not_suit_the_measure(pool, names, plan, trial, error, words):
    with pytest.raises(error, match=words):
        pool.inspect(digits_model(*names), top_k=(1,), passes=(plan,), trial={"inputs": trial})


def ensemble(folder, *models):
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
        coefficients=normal(4 * n_classes, seed=seed).tolist(),
        intercepts=[0.0] * n_classes,
        post_transform="SOFTMAX",
        multi_class=0,
        **{"classlabels_strings" if is_named else "classlabels_ints": labels},
    )
    of_label = TensorProto.STRING if is_named else TensorProto.INT64
    outputs = [value("label", ("N",), of_label), value("p", ("N", n_classes))]
    return make_model([linear], inputs=[value("x", ("N", 4))], outputs=outputs)


def test_members_name_the_same_classes_in_the_same_order_or_number_them(pool, tmp_path):
    options = {"top_k": (1,), "passes": (ENSEMBLE,), "trial": {"x": normal(30, 4)}}
    first = [classifier(["a", "b", "c"], seed) for seed in range(2)]
    for labels in (["a", "b", "c"], [0, 1, 2]):
        files = ensemble(tmp_path, *first, classifier(labels, 2))
        assert pool.inspect(files, **options).n_classes == 3
    for labels in (["b", "c", "d"], ["c", "b", "a"]):
        with pytest.raises(InvalidOnnxModel, match=r"model\[2\]") as refused:
            pool.inspect(ensemble(tmp_path, *first, classifier(labels, 2)), **options)
        assert refused.value.violations[0].rule is ModelRule.MEMBERS_DIFFER


def noisy(*, reads="moved"):
    """Return a model that adds noise to its rows, and computes its scores from ``reads``."""
    noise = "noise = RandomNormalLike<scale = 0.001>(x); moved = Add(x, noise)"
    model = of_values(*steps(f"{noise}; y = MatMul({reads}, w)"))
    model.graph.output.append(value("moved", ("N", N_VALUES)))
    return model


@pytest.mark.parametrize("measure", [None, "gradient_norm"])
def test_a_model_that_draws_its_scores_at_random_needs_the_mean_of_runs(pool, tmp_path, measure):
    options = {"output_name": "y", "top_k": (1,), "trial": {"inputs": normal(30, 4)}}
    plans = [] if measure is None else [PassPlan(measure, passes=4, seed=0, step=1e-3)]
    with pytest.raises(InvalidOnnxModel, match="ensemble_variance"):
        pool.inspect(save(tmp_path, noisy()), passes=plans, **options)
    with pytest.raises(InvalidOnnxModel, match=r"model\[0\].*random"):
        pool.inspect(ensemble(tmp_path, noisy(), noisy()), **options)
    assert pool.inspect(save(tmp_path, noisy(reads="x")), **options).n_classes == N_CLASSES


TOO_WIDE = [(200, 60, "34 passes"), (1000, 2, "left out")]


@pytest.mark.parametrize(("side", "passes", "words"), TOO_WIDE)
def test_last_layers_with_too_many_features_for_their_masks(pool, tmp_path, side, passes, words):
    n_channels = 24
    mean = "y = ReduceMean<axes = [2, 3], keepdims = 0>(maps)"
    model = of_rows(
        *steps(f"wide = Tile(x, times); maps = Conv(wide, kernel); {mean}"),
        shape=("N", 1, 1, 1),
        times=[1, n_channels, side, side],
        kernel=normal(3, n_channels, 1, 1),
    )
    files, measure = save(tmp_path, model), "last_layer_dropout_variance"
    with pytest.raises(TooLarge, match=words) as raised:
        inspect(pool, files, measure, normal(3, 1, 1, 1), passes=passes)
    assert raised.value.violations[0].location == "config.dropout.passes"
