"""Measures that run a model more than once, through the child process and back."""

from dataclasses import replace
from itertools import islice

import numpy as np
import onnxruntime as ort
import pytest
from runner_models import PASSES_FOLDER, digits_model
from scipy.special import log_softmax, softmax
from scipy.stats import spearmanr

from howsure.bins_document.pass_plan import PassPlan
from service.runner.messages.onnx_models import serving

DIGITS = np.load(PASSES_FOLDER / "digits_passes.npz")
X, LABELS = DIGITS["evaluation_inputs"], DIGITS["evaluation_labels"]
DROPOUT = PassPlan("dropout_variance", passes=20, seed=0)
LAST_LAYER = PassPlan("last_layer_dropout_variance", passes=20, seed=0)
ENSEMBLE = PassPlan("ensemble_variance", passes=20, seed=0)
GRADIENT = PassPlan("gradient_norm", passes=16, seed=0, step=1e-3)
JACOBIAN = replace(GRADIENT, measure="jacobian_norm")
MEMBERS = ("member_0", "member_1", "member_2")


def load(pool, files, *plans, x=X):
    files = digits_model(files) if isinstance(files, str) else files
    loaded = pool.inspect(files, top_k=(1, 5), passes=plans, trial={"inputs": x[:100]})
    return files, loaded.resolved


def answers(pool, files, *plans, x=X):
    """Return what predictions answer to rows."""
    return pool.predict(*load(pool, files, *plans, x=x), {"inputs": x})


def measured(pool, files, plan, x=X):
    return answers(pool, files, plan, x=x).uncertainty[plan.measure]


def recorded(pool, files, *plans):
    return pool.record(*load(pool, files, *plans), {"inputs": X}, LABELS, seed=0)


def own_logits(name, x=X):
    return next(own_runs(name, x))


def own_runs(name, x):
    """Run the file itself again and again: one session draws other random numbers each time."""
    session = ort.InferenceSession(str(PASSES_FOLDER / f"{name}.onnx"))
    while True:
        yield session.run(None, {session.get_inputs()[0].name: x})[0].astype(float)


def covariance_norms(passes):
    """Return the 2-norm of each row's covariance by numpy, from passes (M, n, K)."""
    return np.array([np.linalg.norm(np.cov(p.T), 2) for p in passes.swapaxes(0, 1)])


RECORDED = [(["hidden_dropout_cnn_dynamo"], DROPOUT), (["squeezenet_like"], LAST_LAYER)]
RECORDED += [(["variational_mlp_dynamo"], ENSEMBLE), (["spatial_dropout"], ENSEMBLE)]
RECORDED += [(MEMBERS, ENSEMBLE), (["small_cnn"], GRADIENT)]


@pytest.mark.parametrize(("names", "plan"), RECORDED)
def test_predictions_return_the_recorded_values(pool, names, plan):
    model = load(pool, digits_model(*names), plan)
    records = pool.record(*model, {"inputs": X}, LABELS, seed=0)
    column = records.uncertainty[plan.measure]
    predicted = pool.predict(*model, {"inputs": X[:33]}).uncertainty[plan.measure]
    np.testing.assert_allclose(predicted, column[:33], rtol=1e-3, atol=1e-6 * column.max())
    if plan is GRADIENT:
        counts = {name for name in records.uncertainty if name.startswith("gradient_norm@")}
        assert counts == {f"gradient_norm@{n}" for n in (1, 2, 3, 5, 10, 16)}


def test_another_measure_is_served_without_passes(pool):
    files, resolved = load(pool, "hidden_dropout_cnn", DROPOUT, GRADIENT)
    for served, absent in [
        ("entropy", {"dropout_variance", "gradient_norm"}),
        ("gradient_norm", {"dropout_variance"}),
    ]:
        columns = pool.predict(files, serving(resolved, [served]), {"inputs": X[:5]}).uncertainty
        assert served in columns
        assert absent.isdisjoint(columns)


def test_the_noise_depends_on_the_seed_alone_and_the_rate_is_the_callers(pool):
    files, x = digits_model("hidden_dropout_cnn"), X[:100]
    elsewhere = replace(files, sha256="another process")
    plans = [DROPOUT, *(replace(DROPOUT, **one) for one in ({"seed": 1}, {"rate": 0.5}))]
    first, other, wide = (measured(pool, files, plan, x) for plan in plans)
    np.testing.assert_array_equal(measured(pool, elsewhere, DROPOUT, x), first)
    assert not np.isclose(first, other, rtol=1e-3).any()
    assert np.median(wide) > 2 * np.median(first)


def test_records_hold_what_fewer_passes_would_answer(pool):
    records = recorded(pool, "hidden_dropout_cnn", DROPOUT)
    of_five = measured(pool, "hidden_dropout_cnn", replace(DROPOUT, passes=5))
    recorded_five = records.uncertainty["dropout_variance@5"]
    np.testing.assert_allclose(recorded_five, of_five, atol=1e-6 * of_five.max())
    accuracy = np.mean(records.mean_label_rank["dropout_variance@20"] == 0)
    assert abs(accuracy - np.mean(records.hits(1))) < 0.02
    assert np.isfinite(records.mean_log_probability["dropout_variance@1"]).all()


@pytest.mark.parametrize("length", [12, 3])
def test_text_of_any_length_has_noise_of_its_own(pool, length):
    x = np.load(PASSES_FOLDER / "sequences.npz")["evaluation_inputs"][:40]
    files = digits_model("sequence_dropout")
    loaded = pool.inspect(files, top_k=(1,), passes=(DROPOUT,), trial={"inputs": x})
    part = x[:, :length]
    both = (pool.predict(files, loaded.resolved, {"inputs": rows}) for rows in (part, part[7:8]))
    whole, alone = (outputs.uncertainty["dropout_variance"] for outputs in both)
    assert (whole > 0).all()
    np.testing.assert_allclose(alone[0], whole[7], rtol=1e-4)


def test_dropout_of_the_last_layer_alone_is_the_same_where_no_other_has_any(pool):
    records = recorded(pool, "last_layer_dropout_cnn", DROPOUT, LAST_LAYER)
    full, last = (records.uncertainty[plan.measure] for plan in (DROPOUT, LAST_LAYER))
    clear = full > 1e-10
    np.testing.assert_allclose(last[clear], full[clear], rtol=1e-3)
    ranks = (records.mean_label_rank[f"{plan.measure}@20"] for plan in (DROPOUT, LAST_LAYER))
    np.testing.assert_array_equal(*ranks)


def test_the_mean_probability_predicts_and_the_members_variance_is_the_measure(pool):
    outputs = answers(pool, digits_model(*MEMBERS), ENSEMBLE)
    passes = np.stack([softmax(own_logits(name), axis=1) for name in MEMBERS])
    mean = passes.mean(axis=0)
    np.testing.assert_array_equal(outputs.top_classes[:, 0], mean.argmax(axis=1))
    np.testing.assert_allclose(outputs.top_scores[:, 0], mean.max(axis=1), rtol=1e-5)
    entropy = -(mean * np.log(mean)).sum(axis=1)
    np.testing.assert_allclose(outputs.uncertainty["entropy"], entropy, rtol=1e-4)
    variance, expected = outputs.uncertainty["ensemble_variance"], covariance_norms(passes)
    np.testing.assert_allclose(variance, expected, rtol=1e-4, atol=1e-12)
    assert "energy" not in outputs.uncertainty
    plain = answers(pool, digits_model(*MEMBERS))
    np.testing.assert_array_equal(plain.top_classes, outputs.top_classes)
    assert "ensemble_variance" not in plain.uncertainty


def test_records_are_those_of_the_mean(pool):
    records = recorded(pool, digits_model(*MEMBERS), ENSEMBLE)
    own = np.stack([log_softmax(own_logits(name), axis=1) for name in MEMBERS])
    of_label = own[:, np.arange(len(X)), LABELS]
    mean = np.log(np.exp(of_label).mean(axis=0))
    np.testing.assert_allclose(records.label_log_probability, mean, rtol=1e-5)
    for passes, expected in ((3, mean), (1, of_label[0])):
        column = records.mean_log_probability[f"ensemble_variance@{passes}"]
        np.testing.assert_allclose(column, expected, rtol=1e-4, atol=1e-6)


def test_passes_spread_as_those_of_the_runtimes_own_draws(pool):
    x = X[:100]
    outputs = answers(pool, "variational_mlp", replace(ENSEMBLE, passes=200), x=x)
    passes = softmax(np.stack(list(islice(own_runs("variational_mlp", x), 400))), axis=2)
    assert np.abs(outputs.top_scores[:, 0] - passes.mean(axis=0).max(axis=1)).max() < 0.1
    ours, theirs = outputs.uncertainty["ensemble_variance"], covariance_norms(passes)
    assert spearmanr(ours, theirs).statistic > 0.95
    assert 0.8 < np.median(ours / theirs) < 1.25


def test_both_measures_of_slopes_are_what_each_is_alone(pool):
    both = answers(pool, "small_cnn", GRADIENT, JACOBIAN).uncertainty
    for plan in (GRADIENT, JACOBIAN):
        alone = measured(pool, "small_cnn", plan)
        np.testing.assert_allclose(both[plan.measure], alone, rtol=1e-5)


def test_the_jacobian_agrees_with_full_differences_of_the_logits(pool):
    x, step = X[:20], 1e-3
    along = np.stack(
        [
            (own_logits("small_cnn", x + move) - own_logits("small_cnn", x - move)) / (2 * step)
            for move in (step * np.eye(64, dtype=np.float32)).reshape(64, *x.shape[1:])
        ]
    )
    norms = np.linalg.norm(along, axis=0).max(axis=1)
    ratio = measured(pool, "small_cnn", replace(JACOBIAN, passes=64), X)[:20] / norms
    assert abs(np.median(ratio) - 1) < 1e-2
    assert np.corrcoef(np.log(ratio * norms), np.log(norms))[0, 1] > 0.99


def test_the_gradient_agrees_with_automatic_differentiation(pool):
    exact = np.load(PASSES_FOLDER / "gradients.npz")
    norms = exact["gradient_norm"]
    few = measured(pool, "small_cnn", GRADIENT, exact["inputs"])
    assert spearmanr(few, norms).statistic >= 0.98
    assert abs(np.mean(few / norms) - 1) <= 0.1
    # Exact with a direction for each value; a step may cross a kink of the network.
    ratio = measured(pool, "small_cnn", replace(GRADIENT, passes=64), exact["inputs"]) / norms
    assert abs(np.median(ratio) - 1) < 1e-3
    assert (np.abs(ratio - 1) < 0.05).mean() > 0.9
