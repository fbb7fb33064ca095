"""Measures that run a model more than once, through the child process and back."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from scipy.special import log_softmax, softmax
from scipy.stats import spearmanr

from service.errors import InvalidConfig, InvalidOnnxModel
from service.runner.messages.onnx_models import OnnxMember, OnnxModelFiles, serving
from service.runner.messages.passes import PassPlan

FOLDER = Path(__file__).parents[1] / "data" / "passes"
DIGITS = np.load(FOLDER / "digits_passes.npz")
X, LABELS = DIGITS["evaluation_inputs"], DIGITS["evaluation_labels"]
TOP_K = (1, 5)
DROPOUT = PassPlan("dropout_variance", passes=20, seed=0)
LAST_LAYER = PassPlan("last_layer_dropout_variance", passes=20, seed=0)
ENSEMBLE = PassPlan("ensemble_variance", passes=20, seed=0)
GRADIENT = PassPlan("gradient_norm", passes=16, seed=0, step=1e-3)


def files_of(name, *members):
    return OnnxModelFiles(
        FOLDER / f"{name}.onnx", members=tuple(OnnxMember(FOLDER / f"{m}.onnx") for m in members)
    )


def load(pool, files, *plans, x=X, **options):
    found = pool.inspect(files, top_k=TOP_K, passes=plans, trial={"inputs": x[:100]}, **options)
    return files, found.resolved


def own_logits(name, x=X):
    session = ort.InferenceSession(str(FOLDER / f"{name}.onnx"))
    return session.run(None, {session.get_inputs()[0].name: x})[0].astype(float)


def covariance_norms(passes):
    """Return the 2-norm of each row's covariance by numpy, from passes (M, n, K)."""
    return np.array([np.linalg.norm(np.cov(p.T), 2) for p in passes.swapaxes(0, 1)])


def drawn_by_the_runtime(model):
    """Return a model whose Dropout nodes are spelt out, with noise of its own for each row.

    The runtime's own Dropout draws from a lattice: neighbouring runs are far from independent.
    """
    nodes = []
    for number, node in enumerate(model.graph.node):
        if node.op_type != "Dropout":
            nodes.append(node)
            continue
        (ratio,) = (
            onnx.numpy_helper.to_array(other.attribute[0].t)
            for other in model.graph.node
            if other.output[0] == node.input[1]
        )
        drawn, kept, scaled = (f"{name}_{number}" for name in ("drawn", "kept", "scaled"))
        constants = {"rate": ratio, "scale": 1 / (1 - ratio)}
        for name, value in constants.items():
            tensor = onnx.numpy_helper.from_array(np.float32(value), f"{name}_{number}")
            model.graph.initializer.append(tensor)
        make = onnx.helper.make_node
        nodes += [
            make("RandomUniformLike", [node.input[0]], [drawn], seed=float(number)),
            make("Less", [drawn, f"rate_{number}"], [f"dropped_{number}"]),
            make("Not", [f"dropped_{number}"], [f"stays_{number}"]),
            make("Cast", [f"stays_{number}"], [kept], to=onnx.TensorProto.FLOAT),
            make("Mul", [node.input[0], kept], [scaled]),
            make("Mul", [scaled, f"scale_{number}"], [node.output[0]]),
        ]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


class TestDropout:
    def test_the_prediction_is_that_of_the_model_without_noise(self, pool):
        model = load(pool, files_of("hidden_dropout_cnn"), DROPOUT)
        found = pool.predict(*model, {"inputs": X})
        logits = own_logits("hidden_dropout_cnn")  # the runtime deletes Dropout by itself
        np.testing.assert_array_equal(found.top_classes[:, 0], logits.argmax(axis=1))
        np.testing.assert_allclose(
            found.top_scores[:, 0], softmax(logits, axis=1).max(axis=1), rtol=1e-5
        )

    def test_it_is_like_dropout_that_the_runtime_draws(self, pool):
        """With enough passes, the runtime's noise and ours spread the answers alike."""
        plan = PassPlan("dropout_variance", passes=300, seed=0)
        ours = pool.predict(
            *load(pool, files_of("hidden_dropout_cnn"), plan), {"inputs": X[:200]}
        ).uncertainty["dropout_variance"]
        model = drawn_by_the_runtime(onnx.load(FOLDER / "hidden_dropout_cnn.onnx"))
        session = ort.InferenceSession(model.SerializeToString())
        name = session.get_inputs()[0].name
        theirs = covariance_norms(
            np.stack(
                [
                    softmax(session.run(None, {name: X[:200]})[0].astype(float), axis=1)
                    for _ in range(300)
                ]
            )
        )
        clear = theirs > 1e-6
        assert spearmanr(ours[clear], theirs[clear]).statistic > 0.95
        assert 0.8 < np.median(ours[clear] / theirs[clear]) < 1.25

    def test_one_seed_gives_one_answer_and_another_seed_another(self, pool):
        files = files_of("hidden_dropout_cnn")
        resolved = load(pool, files, DROPOUT)[1]
        first = pool.predict(files, resolved, {"inputs": X[:50]}).uncertainty["dropout_variance"]
        again = OnnxModelFiles(files.path, sha256="another process")
        second = pool.predict(again, resolved, {"inputs": X[:50]}).uncertainty["dropout_variance"]
        np.testing.assert_array_equal(first, second)
        other = load(pool, files, PassPlan("dropout_variance", passes=20, seed=1))
        third = pool.predict(*other, {"inputs": X[:50]}).uncertainty["dropout_variance"]
        assert not np.isclose(first, third, rtol=1e-3).any()

    @pytest.mark.parametrize("name", ["hidden_dropout_cnn", "hidden_dropout_cnn_dynamo"])
    @pytest.mark.parametrize("size", [1, 7, 64, 256])
    def test_the_rows_beside_a_row_do_not_show(self, pool, name, size):
        model = load(pool, files_of(name), DROPOUT)
        whole = pool.predict(*model, {"inputs": X}).uncertainty["dropout_variance"]
        order = np.random.default_rng(size).permutation(len(X))
        shuffled = np.empty_like(whole)
        for at in np.split(order, range(size, len(X), size))[: 200 // size + 1]:
            part = pool.predict(*model, {"inputs": X[at]}).uncertainty["dropout_variance"]
            shuffled[at] = part
            np.testing.assert_allclose(part, whole[at], atol=1e-6 * whole.max())

    def test_records_hold_what_predictions_answer_and_each_prefix(self, pool):
        model = load(pool, files_of("hidden_dropout_cnn"), DROPOUT)
        predicted = pool.predict(*model, {"inputs": X}).uncertainty["dropout_variance"]
        records = pool.record(*model, {"inputs": X}, LABELS, seed=0)
        np.testing.assert_allclose(
            records.uncertainty["dropout_variance"], predicted, atol=1e-6 * predicted.max()
        )
        of_five = load(pool, files_of("hidden_dropout_cnn"), PassPlan("dropout_variance", 5, 0))
        np.testing.assert_allclose(
            records.uncertainty["dropout_variance@5"],
            pool.record(*of_five, {"inputs": X}, LABELS, seed=0).uncertainty["dropout_variance"],
            atol=1e-6 * predicted.max(),
        )
        accuracy = np.mean(records.mean_label_rank["dropout_variance@20"] == 0)
        assert abs(accuracy - np.mean(records.hits(1))) < 0.02
        assert np.isfinite(records.mean_log_probability["dropout_variance@1"]).all()

    def test_text_of_any_length_has_its_own_noise(self, pool):
        sequences = np.load(FOLDER / "sequences.npz")
        x = sequences["evaluation_inputs"][:40]
        files = files_of("sequence_dropout")
        found = pool.inspect(files, top_k=(1,), passes=(DROPOUT,), trial={"inputs": x})
        for length in (12, 5, 3):
            part = x[:, :length]
            whole = pool.predict(files, found.resolved, {"inputs": part}).uncertainty
            alone = pool.predict(files, found.resolved, {"inputs": part[7:8]}).uncertainty
            assert (whole["dropout_variance"] > 0).all()
            np.testing.assert_allclose(
                alone["dropout_variance"][0], whole["dropout_variance"][7], rtol=1e-4
            )

    def test_a_rate_of_the_callers_overrides_that_of_the_file(self, pool):
        medians = []
        for rate in (0.02, 0.5):
            plan = PassPlan("dropout_variance", passes=20, seed=0, rate=rate)
            model = load(pool, files_of("hidden_dropout_cnn"), plan)
            found = pool.predict(*model, {"inputs": X[:100]}).uncertainty["dropout_variance"]
            medians.append(np.median(found))
        assert medians[0] < medians[1] / 5

    def test_its_cost_is_told(self, pool):
        found = pool.inspect(
            files_of("hidden_dropout_cnn"),
            top_k=TOP_K,
            passes=(DROPOUT,),
            trial={"inputs": X[:100]},
        )
        assert found.costs.keys() == {"plain", "dropout_variance"}
        assert found.costs["dropout_variance"] > 3 * found.costs["plain"] > 0

    def test_serving_another_measure_runs_no_passes(self, pool):
        files, resolved = load(pool, files_of("hidden_dropout_cnn"), DROPOUT, GRADIENT)
        narrowed = serving(resolved, ["entropy"])
        found = pool.predict(files, narrowed, {"inputs": X[:5]}).uncertainty
        assert {"dropout_variance", "gradient_norm"}.isdisjoint(found)
        narrowed = serving(resolved, ["gradient_norm"])
        found = pool.predict(files, narrowed, {"inputs": X[:5]}).uncertainty
        assert "gradient_norm" in found
        assert "dropout_variance" not in found


class TestLastLayer:
    def test_it_equals_full_dropout_where_that_is_all_the_dropout_there_is(self, pool):
        files = files_of("last_layer_dropout_cnn")
        model = load(pool, files, DROPOUT, LAST_LAYER)
        records = pool.record(*model, {"inputs": X}, LABELS, seed=0)
        full = records.uncertainty["dropout_variance"]
        last = records.uncertainty["last_layer_dropout_variance"]
        clear = full > 1e-10
        np.testing.assert_allclose(last[clear], full[clear], rtol=1e-3)
        np.testing.assert_array_equal(
            records.mean_label_rank["dropout_variance@20"],
            records.mean_label_rank["last_layer_dropout_variance@20"],
        )

    def test_another_seed_differs_by_no_more_than_full_dropout_with_another_seed(self, pool):
        files = files_of("last_layer_dropout_cnn")

        def of(measure, seed):
            plan = PassPlan(measure, passes=300, seed=seed)
            return pool.predict(*load(pool, files, plan), {"inputs": X}).uncertainty[measure]

        full, other = (of("dropout_variance", seed) for seed in (0, 1))
        last = of("last_layer_dropout_variance", 2)
        between_seeds = spearmanr(full, other).statistic
        assert spearmanr(full, last).statistic > min(0.95, between_seeds - 0.01)

    def test_the_rate_is_that_of_the_file_where_it_has_one(self, pool):
        plans = {
            name: load(pool, files_of(name), LAST_LAYER)[1]["passes"][0]
            for name in ("last_layer_dropout_cnn", "small_cnn", "squeezenet_like")
        }
        assert [plan["rate"] for plan in plans.values()] == pytest.approx([0.25, 0.1, 0.5])

    def test_it_serves_what_was_recorded(self, pool):
        for name in ("small_cnn", "squeezenet_like"):
            model = load(pool, files_of(name), LAST_LAYER)
            records = pool.record(*model, {"inputs": X}, LABELS, seed=0)
            predicted = pool.predict(*model, {"inputs": X[:33]}).uncertainty
            column = records.uncertainty["last_layer_dropout_variance"]
            np.testing.assert_allclose(
                predicted["last_layer_dropout_variance"],
                column[:33],
                rtol=1e-3,
                atol=1e-6 * column.max(),
            )


class TestEnsemble:
    MEMBERS = ("member_0", "member_1", "member_2")

    def mean(self, x=X):
        return np.mean([softmax(own_logits(name, x), axis=1) for name in self.MEMBERS], axis=0)

    def test_the_mean_probability_predicts(self, pool):
        model = load(pool, files_of(*self.MEMBERS), ENSEMBLE)
        found = pool.predict(*model, {"inputs": X})
        mean = self.mean()
        np.testing.assert_array_equal(found.top_classes[:, 0], mean.argmax(axis=1))
        np.testing.assert_allclose(found.top_scores[:, 0], mean.max(axis=1), rtol=1e-5)
        np.testing.assert_allclose(
            found.uncertainty["entropy"], -(mean * np.log(mean)).sum(axis=1), rtol=1e-4
        )
        assert "energy" not in found.uncertainty

    def test_the_variance_between_members(self, pool):
        model = load(pool, files_of(*self.MEMBERS), ENSEMBLE)
        found = pool.predict(*model, {"inputs": X}).uncertainty["ensemble_variance"]
        passes = np.stack([softmax(own_logits(name), axis=1) for name in self.MEMBERS])
        np.testing.assert_allclose(found, covariance_norms(passes), rtol=1e-4, atol=1e-12)

    def test_records_are_those_of_the_mean(self, pool):
        model = load(pool, files_of(*self.MEMBERS), ENSEMBLE)
        records = pool.record(*model, {"inputs": X}, LABELS, seed=0)
        mean = self.mean()
        np.testing.assert_allclose(
            records.label_log_probability, np.log(mean[np.arange(len(X)), LABELS]), rtol=1e-5
        )
        np.testing.assert_allclose(
            records.label_log_probability, records.mean_log_probability["ensemble_variance@3"]
        )
        first = log_softmax(own_logits("member_0"), axis=1)[np.arange(len(X)), LABELS]
        np.testing.assert_allclose(
            records.mean_log_probability["ensemble_variance@1"], first, rtol=1e-4, atol=1e-6
        )

    def test_members_alone_predict_without_the_measure(self, pool):
        model = load(pool, files_of(*self.MEMBERS))
        found = pool.predict(*model, {"inputs": X})
        np.testing.assert_array_equal(found.top_classes[:, 0], self.mean().argmax(axis=1))
        assert "ensemble_variance" not in found.uncertainty

    def test_a_stored_resolution_serves_in_another_child(self, pool):
        files, resolved = load(pool, files_of(*self.MEMBERS), ENSEMBLE)
        stored = json.loads(json.dumps(resolved))
        moved = OnnxModelFiles(files.path, sha256="elsewhere", members=files.members)
        assert stored["passes"][0]["passes"] == 3
        for narrowed in (stored, serving(stored, ["entropy"])):
            found = pool.predict(moved, narrowed, {"inputs": X[:9]})
            np.testing.assert_array_equal(found.top_classes[:, 0], self.mean(X[:9]).argmax(axis=1))

    @pytest.mark.parametrize(
        ("other", "said"),
        [
            ("member_other_classes", "9 where the first has 10"),
            ("member_other_input", "take the same inputs"),
        ],
    )
    def test_members_that_do_not_go_together(self, pool, other, said):
        with pytest.raises(InvalidOnnxModel, match=said) as raised:
            load(pool, files_of("member_0", "member_1", other), ENSEMBLE)
        assert raised.value.violations[0].location == "model[2]"

    def test_members_that_are_the_same(self, pool):
        with pytest.raises(InvalidConfig, match="answer alike"):
            load(pool, files_of("member_0", "member_0"), ENSEMBLE)


class TestStochasticGraphs:
    @pytest.mark.parametrize(
        "name", ["variational_mlp", "variational_mlp_dynamo", "spatial_dropout"]
    )
    def test_the_mean_of_passes_predicts_and_repeats(self, pool, name):
        model = load(pool, files_of(name), ENSEMBLE)
        found = pool.predict(*model, {"inputs": X})
        assert np.mean(found.top_classes[:, 0] == LABELS) > 0.8
        variance = found.uncertainty["ensemble_variance"]
        assert (variance > 0).mean() > 0.9
        again = pool.predict(*model, {"inputs": X[100:107]})
        np.testing.assert_allclose(
            again.uncertainty["ensemble_variance"], variance[100:107], atol=1e-6 * variance.max()
        )

    def test_it_is_like_the_runtimes_own_draws(self, pool):
        plan = PassPlan("ensemble_variance", passes=200, seed=0)
        files = files_of("variational_mlp")
        found = pool.predict(*load(pool, files, plan), {"inputs": X[:100]})
        session = ort.InferenceSession(str(files.path))
        name = session.get_inputs()[0].name
        passes = np.stack(
            [
                softmax(session.run(None, {name: X[:100]})[0].astype(float), axis=1)
                for _ in range(400)
            ]
        )
        assert np.abs(found.top_scores[:, 0] - passes.mean(axis=0).max(axis=1)).max() < 0.1
        ours, theirs = found.uncertainty["ensemble_variance"], covariance_norms(passes)
        assert spearmanr(ours, theirs).statistic > 0.95
        assert 0.8 < np.median(ours / theirs) < 1.25

    def test_a_graph_without_random_operators(self, pool):
        with pytest.raises(InvalidConfig, match="several"):
            load(pool, files_of("small_cnn"), ENSEMBLE)


class TestGradient:
    def test_it_agrees_with_automatic_differentiation(self, pool):
        exact = np.load(FOLDER / "gradients.npz")
        model = load(pool, files_of("small_cnn"), GRADIENT, x=exact["inputs"])
        found = pool.predict(*model, {"inputs": exact["inputs"]}).uncertainty["gradient_norm"]
        assert spearmanr(found, exact["gradient_norm"]).statistic >= 0.98
        assert abs(np.mean(found / exact["gradient_norm"]) - 1) <= 0.1

    def test_with_a_direction_for_each_value_it_is_exact(self, pool):
        exact = np.load(FOLDER / "gradients.npz")
        plan = PassPlan("gradient_norm", passes=64, seed=0, step=1e-3)
        model = load(pool, files_of("small_cnn"), plan, x=exact["inputs"])
        assert model[1]["passes"][0]["divisible"] is False
        found = pool.predict(*model, {"inputs": exact["inputs"]}).uncertainty["gradient_norm"]
        # A step may cross a kink of the network; the median tells of the others.
        ratio = found / exact["gradient_norm"]
        assert abs(np.median(ratio) - 1) < 1e-3
        assert (np.abs(ratio - 1) < 0.05).mean() > 0.9

    def test_records_hold_prefixes(self, pool):
        model = load(pool, files_of("small_cnn"), GRADIENT)
        records = pool.record(*model, {"inputs": X}, LABELS, seed=0)
        names = {name for name in records.uncertainty if name.startswith("gradient_norm@")}
        assert names == {f"gradient_norm@{n}" for n in (1, 2, 3, 5, 10, 16)}

    def test_integers_allow_no_small_step(self, pool):
        tokens = np.load(FOLDER / "sequences.npz")["evaluation_inputs"]
        with pytest.raises(InvalidConfig, match="int64"):
            load(pool, files_of("sequence_dropout"), GRADIENT, x=tokens)
