"""Measures that run a model more than once, through the child process and back."""

from dataclasses import replace
from itertools import islice

import numpy as np
import onnxruntime as ort
import pytest
from runner_models import PASSES_FOLDER, digits_model
from scipy.special import log_softmax, softmax
from scipy.stats import spearmanr

from service.runner.messages.onnx_models import serving
from service.runner.messages.passes import PassPlan

DIGITS = np.load(PASSES_FOLDER / "digits_passes.npz")
X, LABELS = DIGITS["evaluation_inputs"], DIGITS["evaluation_labels"]
TOP_K = (1, 5)
DROPOUT = PassPlan("dropout_variance", passes=20, seed=0)
LAST_LAYER = PassPlan("last_layer_dropout_variance", passes=20, seed=0)
ENSEMBLE = PassPlan("ensemble_variance", passes=20, seed=0)
GRADIENT = PassPlan("gradient_norm", passes=16, seed=0, step=1e-3)
MEMBERS = ("member_0", "member_1", "member_2")


def load(pool, files, *plans, x=X):
    found = pool.inspect(files, top_k=TOP_K, passes=plans, trial={"inputs": x[:100]})
    return files, found.resolved


def measured(pool, files, plan, x=X):
    """Return the measure of each row, as predictions answer it."""
    files = digits_model(files) if isinstance(files, str) else files
    model = load(pool, files, plan, x=x)
    return pool.predict(*model, {"inputs": x}).uncertainty[plan.measure]


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


@pytest.mark.parametrize(
    ("names", "plan"),
    [
        (["hidden_dropout_cnn"], DROPOUT),
        (["small_cnn"], LAST_LAYER),
        (["squeezenet_like"], LAST_LAYER),
        (["variational_mlp"], ENSEMBLE),
        (MEMBERS, ENSEMBLE),
        (["small_cnn"], GRADIENT),
    ],
)
def test_predictions_return_the_recorded_values(pool, names, plan):
    model = load(pool, digits_model(*names), plan)
    records = pool.record(*model, {"inputs": X}, LABELS, seed=0)
    column = records.uncertainty[plan.measure]
    predicted = pool.predict(*model, {"inputs": X[:33]}).uncertainty[plan.measure]
    np.testing.assert_allclose(predicted, column[:33], rtol=1e-3, atol=1e-6 * column.max())


def test_another_measure_is_served_without_passes(pool):
    files, resolved = load(pool, digits_model("hidden_dropout_cnn"), DROPOUT, GRADIENT)
    for served, absent in [
        ("entropy", {"dropout_variance", "gradient_norm"}),
        ("gradient_norm", {"dropout_variance"}),
    ]:
        found = pool.predict(files, serving(resolved, [served]), {"inputs": X[:5]}).uncertainty
        assert served in found
        assert absent.isdisjoint(found)


class TestDropout:
    def test_the_prediction_is_that_of_the_model_without_noise(self, pool):
        model = load(pool, digits_model("hidden_dropout_cnn"), DROPOUT)
        found = pool.predict(*model, {"inputs": X})
        logits = own_logits("hidden_dropout_cnn")  # the runtime deletes Dropout by itself
        np.testing.assert_array_equal(found.top_classes[:, 0], logits.argmax(axis=1))
        np.testing.assert_allclose(
            found.top_scores[:, 0], softmax(logits, axis=1).max(axis=1), rtol=1e-5
        )

    def test_the_noise_depends_on_the_seed_alone(self, pool):
        files = digits_model("hidden_dropout_cnn")
        moved = replace(files, sha256="another process")
        first, second = (measured(pool, of, DROPOUT, X[:50]) for of in (files, moved))
        np.testing.assert_array_equal(first, second)
        other = measured(pool, files, replace(DROPOUT, seed=1), X[:50])
        assert not np.isclose(first, other, rtol=1e-3).any()

    @pytest.mark.parametrize("size", [1, 7, 256])
    def test_a_value_does_not_depend_on_the_rows_beside_it(self, pool, size):
        model = load(pool, digits_model("hidden_dropout_cnn_dynamo"), DROPOUT)
        whole = pool.predict(*model, {"inputs": X}).uncertainty["dropout_variance"]
        order = np.random.default_rng(size).permutation(len(X))
        for at in np.split(order, range(size, len(X), size))[: 200 // size + 1]:
            part = pool.predict(*model, {"inputs": X[at]}).uncertainty["dropout_variance"]
            np.testing.assert_allclose(part, whole[at], atol=1e-6 * whole.max())

    def test_records_hold_what_fewer_passes_would_answer(self, pool):
        model = load(pool, digits_model("hidden_dropout_cnn"), DROPOUT)
        records = pool.record(*model, {"inputs": X}, LABELS, seed=0)
        of_five = measured(pool, "hidden_dropout_cnn", replace(DROPOUT, passes=5))
        np.testing.assert_allclose(
            records.uncertainty["dropout_variance@5"], of_five, atol=1e-6 * of_five.max()
        )
        accuracy = np.mean(records.mean_label_rank["dropout_variance@20"] == 0)
        assert abs(accuracy - np.mean(records.hits(1))) < 0.02
        assert np.isfinite(records.mean_log_probability["dropout_variance@1"]).all()

    @pytest.mark.parametrize("length", [12, 5, 3])
    def test_text_of_any_length_has_noise_of_its_own(self, pool, length):
        x = np.load(PASSES_FOLDER / "sequences.npz")["evaluation_inputs"][:40]
        files = digits_model("sequence_dropout")
        found = pool.inspect(files, top_k=(1,), passes=(DROPOUT,), trial={"inputs": x})
        part = x[:, :length]
        whole, alone = (
            pool.predict(files, found.resolved, {"inputs": rows}).uncertainty["dropout_variance"]
            for rows in (part, part[7:8])
        )
        assert (whole > 0).all()
        np.testing.assert_allclose(alone[0], whole[7], rtol=1e-4)

    def test_the_callers_rate_overrides_that_of_the_file(self, pool):
        low, high = (
            np.median(measured(pool, "hidden_dropout_cnn", replace(DROPOUT, rate=rate), X[:100]))
            for rate in (0.02, 0.5)
        )
        assert low < high / 5


class TestLastLayer:
    def test_it_equals_full_dropout_where_only_the_last_layer_has_dropout(self, pool):
        model = load(pool, digits_model("last_layer_dropout_cnn"), DROPOUT, LAST_LAYER)
        records = pool.record(*model, {"inputs": X}, LABELS, seed=0)
        full = records.uncertainty["dropout_variance"]
        last = records.uncertainty["last_layer_dropout_variance"]
        clear = full > 1e-10
        np.testing.assert_allclose(last[clear], full[clear], rtol=1e-3)
        np.testing.assert_array_equal(
            records.mean_label_rank["dropout_variance@20"],
            records.mean_label_rank["last_layer_dropout_variance@20"],
        )

    @pytest.mark.parametrize(
        ("name", "rate"),
        [("last_layer_dropout_cnn", 0.25), ("small_cnn", 0.1), ("squeezenet_like", 0.5)],
    )
    def test_the_rate_is_that_of_the_file_or_the_default(self, pool, name, rate):
        (plan,) = load(pool, digits_model(name), LAST_LAYER)[1]["passes"]
        assert plan["rate"] == pytest.approx(rate)


class TestEnsemble:
    def test_the_mean_probability_predicts_and_the_members_variance_is_the_measure(self, pool):
        model = load(pool, digits_model(*MEMBERS), ENSEMBLE)
        found = pool.predict(*model, {"inputs": X})
        passes = np.stack([softmax(own_logits(name), axis=1) for name in MEMBERS])
        mean = passes.mean(axis=0)
        np.testing.assert_array_equal(found.top_classes[:, 0], mean.argmax(axis=1))
        np.testing.assert_allclose(found.top_scores[:, 0], mean.max(axis=1), rtol=1e-5)
        entropy = -(mean * np.log(mean)).sum(axis=1)
        np.testing.assert_allclose(found.uncertainty["entropy"], entropy, rtol=1e-4)
        np.testing.assert_allclose(
            found.uncertainty["ensemble_variance"], covariance_norms(passes), rtol=1e-4, atol=1e-12
        )
        assert "energy" not in found.uncertainty

    def test_records_are_those_of_the_mean(self, pool):
        model = load(pool, digits_model(*MEMBERS), ENSEMBLE)
        records = pool.record(*model, {"inputs": X}, LABELS, seed=0)
        own = np.stack([log_softmax(own_logits(name), axis=1) for name in MEMBERS])
        of_label = own[:, np.arange(len(X)), LABELS]
        mean = np.log(np.exp(of_label).mean(axis=0))
        np.testing.assert_allclose(records.label_log_probability, mean, rtol=1e-5)
        for passes, expected in ((3, mean), (1, of_label[0])):
            found = records.mean_log_probability[f"ensemble_variance@{passes}"]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)

    def test_members_predict_without_the_measure(self, pool):
        model = load(pool, digits_model(*MEMBERS))
        found = pool.predict(*model, {"inputs": X})
        mean = np.mean([softmax(own_logits(name), axis=1) for name in MEMBERS], axis=0)
        np.testing.assert_array_equal(found.top_classes[:, 0], mean.argmax(axis=1))
        assert "ensemble_variance" not in found.uncertainty


class TestStochasticGraphs:
    @pytest.mark.parametrize(
        "name", ["variational_mlp", "variational_mlp_dynamo", "spatial_dropout"]
    )
    def test_the_mean_of_passes_predicts_and_repeats(self, pool, name):
        model = load(pool, digits_model(name), ENSEMBLE)
        found = pool.predict(*model, {"inputs": X})
        assert np.mean(found.top_classes[:, 0] == LABELS) > 0.8
        variance = found.uncertainty["ensemble_variance"]
        assert (variance > 0).mean() > 0.9
        again = pool.predict(*model, {"inputs": X[100:107]})
        np.testing.assert_allclose(
            again.uncertainty["ensemble_variance"], variance[100:107], atol=1e-6 * variance.max()
        )

    def test_passes_spread_as_those_of_the_runtimes_own_draws(self, pool):
        x = X[:100]
        model = load(pool, digits_model("variational_mlp"), replace(ENSEMBLE, passes=200))
        found = pool.predict(*model, {"inputs": x})
        passes = softmax(np.stack(list(islice(own_runs("variational_mlp", x), 400))), axis=2)
        assert np.abs(found.top_scores[:, 0] - passes.mean(axis=0).max(axis=1)).max() < 0.1
        ours, theirs = found.uncertainty["ensemble_variance"], covariance_norms(passes)
        assert spearmanr(ours, theirs).statistic > 0.95
        assert 0.8 < np.median(ours / theirs) < 1.25


class TestGradient:
    def test_it_agrees_with_automatic_differentiation(self, pool):
        exact = np.load(PASSES_FOLDER / "gradients.npz")
        found = measured(pool, "small_cnn", GRADIENT, exact["inputs"])
        assert spearmanr(found, exact["gradient_norm"]).statistic >= 0.98
        assert abs(np.mean(found / exact["gradient_norm"]) - 1) <= 0.1

    def test_it_is_exact_with_a_direction_for_each_value(self, pool):
        exact = np.load(PASSES_FOLDER / "gradients.npz")
        found = measured(pool, "small_cnn", replace(GRADIENT, passes=64), exact["inputs"])
        # A step may cross a kink of the network; the median is that of the others.
        ratio = found / exact["gradient_norm"]
        assert abs(np.median(ratio) - 1) < 1e-3
        assert (np.abs(ratio - 1) < 0.05).mean() > 0.9

    def test_records_hold_what_fewer_directions_would_answer(self, pool):
        model = load(pool, digits_model("small_cnn"), GRADIENT)
        records = pool.record(*model, {"inputs": X}, LABELS, seed=0)
        names = {name for name in records.uncertainty if name.startswith("gradient_norm@")}
        assert names == {f"gradient_norm@{n}" for n in (1, 2, 3, 5, 10, 16)}
