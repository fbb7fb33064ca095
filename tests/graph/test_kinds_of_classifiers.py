"""Kind and order of the classes of each classifier that exports to ONNX.

What is served is compared with the library's own probabilities; where the model is refused, the
message has both readings.
"""

from pathlib import Path

import numpy as np
import pytest
from classifier_files import skl2onnx_model
from graph_models import constant, make_model, node, passthrough, resolve, run_session, serve, value
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.multiclass import OneVsOneClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from service.errors import InvalidOnnxModel, ModelRule

FOLDER = Path(__file__).parents[1] / "data" / "onnx"
REGRESSION = {"max_iter": 300}
ESTIMATORS = {
    "logistic": lambda: LogisticRegression(**REGRESSION),
    "forest": lambda: RandomForestClassifier(50, max_depth=6, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(50, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=5, random_state=0),
    "adaboost": lambda: AdaBoostClassifier(n_estimators=5, random_state=0),
    "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
    "bagging": lambda: BaggingClassifier(DecisionTreeClassifier(max_depth=4), 5, random_state=0),
    "neighbours": lambda: KNeighborsClassifier(7),
    "gaussian": GaussianNB,
    "bernoulli": lambda: BernoulliNB(binarize=1.0),
    "multinomial": lambda: make_pipeline(MinMaxScaler(clip=True), MultinomialNB()),
    "platt": lambda: CalibratedClassifierCV(SVC(random_state=0), ensemble=False, cv=3),
    "network": lambda: make_pipeline(StandardScaler(), MLPClassifier((6,), max_iter=40)),
    "quadratic": lambda: QuadraticDiscriminantAnalysis(reg_param=0.1),
    "sgd": lambda: make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)),
    "calibrated": lambda: CalibratedClassifierCV(LogisticRegression(**REGRESSION), cv=3),
    "voting": lambda: VotingClassifier(
        [("a", LogisticRegression(**REGRESSION)), ("b", DecisionTreeClassifier(max_depth=3))],
        voting="soft",
        flatten_transform=False,
    ),
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression(**REGRESSION)),
}
# skl2onnx writes graphs of mixed types for these, which ONNX Runtime does not load.
FLOAT32_ALONE = {"adaboost", "voting"}


def data(kind, dtype):
    """Return rows to fit and labels: names of three kinds in a set, 0 and 1 in the other."""
    loaded = load_breast_cancer if kind == "binary" else load_iris
    rows, labels = loaded(return_X_y=True)
    rows = rows[:, :6].astype(dtype)
    return rows, labels if kind == "binary" else np.array(["setosa", "virgin", "zebra"])[labels]


def shaken(rows):
    """Return rows that lie on no threshold of a tree and have no twin in the set."""
    noise = np.random.default_rng(0).normal(0, 0.01, rows.shape)
    return (rows * (1 + noise)).astype(rows.dtype)


def probabilities(served):
    scores = served["scores"].astype(np.float64)
    if served.choice.kind == "logits":
        return softmax(scores, axis=1)
    scores = np.clip(scores, 0, None)
    return scores / scores.sum(axis=1, keepdims=True)


CELLS = [
    (name, kind, dtype, zipmap)
    for name in ESTIMATORS
    for kind in ("binary", "three")
    for dtype, zipmap in (("float32", True), ("float32", False), ("float64", False))
    if dtype == "float32" or name not in FLOAT32_ALONE
]


@pytest.mark.parametrize(("name", "kind", "dtype", "zipmap"), CELLS)
def test_a_classifiers_probabilities_are_served_as_they_are(name, kind, dtype, zipmap):
    rows, labels = data(kind, dtype)
    estimator = ESTIMATORS[name]()
    served = serve(skl2onnx_model(estimator, rows, labels, zipmap=zipmap), {"X": shaken(rows)})
    expected = estimator.predict_proba(shaken(rows))
    # A float32 threshold may send a row to another leaf: a row or two, not a share of them.
    near = np.abs(probabilities(served) - expected).max(axis=1) < 1e-3
    assert near.mean() > 0.97
    np.testing.assert_allclose(served["top_scores"].sum(axis=1), 1, atol=1e-5)
    assert served["top_scores"].min() >= 0
    assert served.description.class_labels == tuple(estimator.classes_.tolist())


@pytest.mark.parametrize("name", sorted(FLOAT32_ALONE))
def test_what_skl2onnx_writes_in_float64_is_no_valid_model(name):
    """If this fails, a new version corrects it: add the cell."""
    rows, labels = data("binary", "float64")
    model = skl2onnx_model(ESTIMATORS[name](), rows, labels, zipmap=False)
    with pytest.raises(Fail, match="bound to different types"):
        run_session(model, {"X": rows})


@pytest.mark.parametrize("kind", ["binary", "three"])
@pytest.mark.parametrize("make", [LinearSVC, RidgeClassifier, SGDClassifier])
def test_decision_scores_are_logits(make, kind):
    rows, labels = data(kind, "float32")
    estimator = make()
    served = serve(skl2onnx_model(estimator, rows, labels), {"X": shaken(rows)})
    assert served.choice.kind == "logits"
    answers = estimator.classes_[served["top_classes"][:, 0]]
    assert (answers == estimator.predict(shaken(rows))).mean() > 0.99


def test_a_discriminant_is_read_as_the_graph_has_it():
    """skl2onnx writes softmax(-z, z) for two classes where scikit-learn has sigmoid(z)."""
    rows, labels = data("binary", "float32")
    model = skl2onnx_model(LinearDiscriminantAnalysis(), rows, labels, zipmap=False)
    own = run_session(model, {"X": rows})["probabilities"]
    np.testing.assert_allclose(probabilities(serve(model, {"X": rows})), own, atol=1e-5)


@pytest.mark.parametrize("zipmap", [True, False])
def test_columns_in_another_order_than_the_labels_are_refused(zipmap):
    """skl2onnx writes the two decision scores of an SVC in reverse order."""
    rows, labels = data("binary", "float32")
    model = skl2onnx_model(SVC(), rows, labels, zipmap=zipmap)
    with pytest.raises(InvalidOnnxModel, match=r"scores and its label .*output\.kind") as caught:
        resolve(model, {"X": rows})
    assert caught.value.violations[0].rule == ModelRule.LABELS_DIFFER
    assert resolve(model, {"X": rows}, kind="logits").kind == "logits"


def test_names_in_another_order_than_the_columns_are_refused():
    rows, labels = data("binary", "float32")
    names = np.array(["bad", "good"])[labels]
    with pytest.raises(InvalidOnnxModel, match=r"class 'good', the label is 'bad'|'bad'.*'good'"):
        resolve(skl2onnx_model(SVC(), rows, names, zipmap=False), {"X": rows})


def test_scores_of_pairs_of_classes_are_refused():
    rows, _ = data("three", "float32")
    digits = np.repeat(np.arange(5), 30)
    model = skl2onnx_model(SVC(decision_function_shape="ovo"), rows, digits, zipmap=False)
    with pytest.raises(InvalidOnnxModel, match="10 columns of scores for 5 classes"):
        resolve(model, {"X": rows})


def asked(model, rows):
    with pytest.raises(InvalidOnnxModel) as caught:
        resolve(model, rows)
    violation = caught.value.violations[0]
    assert violation.rule == ModelRule.UNCLEAR_KIND
    assert 'Set output.kind to "logits" or "probabilities"' in violation.message
    return violation.message


def test_scores_that_sum_to_one_beyond_the_unit_interval_are_asked_about():
    rows, labels = data("binary", "float32")
    message = asked(skl2onnx_model(OneVsOneClassifier(LogisticRegression(**REGRESSION)), rows,
                                   labels, zipmap=False), {"X": rows})  # fmt: skip
    assert "as logits" in message
    assert "as probabilities, because each row sums to 1" in message


def test_percentages_are_asked_about():
    shares = softmax(np.random.default_rng(0).normal(size=(20, 3)), axis=1)
    message = asked(passthrough(), {"x": (100 * shares).astype(np.float32)})
    assert "as logits" in message
    assert "each row sums to 100" in message


def test_one_column_on_one_side_of_a_half_is_asked_about():
    message = asked(passthrough(shape=["N", 1]), {"x": np.float32([[0.1], [0.2], [0.4]])})
    assert "as probabilities" in message
    assert "as the logit of class 1" in message


def test_a_sigmoid_on_one_side_of_a_half_is_a_probability():
    model = make_model([node("Sigmoid", ["x"], ["s"]), node("Identity", ["s"], ["y"])])
    choice = resolve(model, {"x": np.float32([[-3], [-2], [-1]])})
    assert "sigmoid of 'x'" in choice.inferred


def test_a_regression_is_asked_about():
    regressor = node("LinearRegressor", ["x"], ["y"], domain="ai.onnx.ml", coefficients=[0.5, 0.1])
    model = make_model([regressor], inputs=[value("x", ["N", 2])], outputs=[value("y", ["N", 1])])
    rows = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    assert "a regression, which is not supported" in asked(model, {"x": rows})
    assert resolve(model, {"x": rows}, kind="logits").kind == "logits"


def test_a_graph_of_probabilities_with_other_values_is_asked_about():
    normalizer = node("Normalizer", ["x"], ["y"], domain="ai.onnx.ml", norm="L1")
    rows = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    message = asked(make_model([normalizer]), {"x": rows})
    assert "as logits" in message
    assert "as probabilities, because a Normalizer of sums makes it" in message


@pytest.mark.parametrize("stray", [-1.19e-7, -9e-4])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_probabilities_beyond_the_unit_interval_by_rounding_are_clipped(columns, stray):
    positive = np.float32([stray, 0.25, 0.75, 1 - stray])
    rows = {1: [positive], 2: [1 - positive, positive], 3: [1 - positive, positive, 0 * positive]}
    shape = ["N", 1] if columns == 1 else ["N", columns]
    served = serve(passthrough(shape=shape), {"x": np.stack(rows[columns], axis=1)})
    assert served.choice.kind == "probabilities"
    assert served["top_scores"].min() >= 0
    assert served["top_scores"].max() == 1
    np.testing.assert_array_equal(served["top_classes"][:, 0], [0, 0, 1, 1])


def references(name):
    with np.load(FOLDER / f"{name}_references.npz") as archive:
        return dict(archive)


BOOSTED = references("boosted") | references("histogram")  # of the same rows
KERAS = references("keras")


@pytest.mark.parametrize("kind", ["binary", "three"])
@pytest.mark.parametrize(
    "name",
    [
        *("lightgbm_{}_maps", "lightgbm_{}_matrix", "xgboost_{}_matrix", "catboost_{}_maps"),
        *("histogram_{}_maps", "histogram_{}_matrix"),
    ],
)
def test_boosted_trees_are_served_as_their_library_says(name, kind):
    data = (FOLDER / f"{name.format(kind)}.onnx").read_bytes()
    takes = {"catboost": "features", "histogram": "X"}.get(name.split("_")[0], "rows")
    served = serve(data, {takes: BOOSTED["rows"]})
    expected = BOOSTED[f"{name.split('_')[0]}_{kind}"]
    np.testing.assert_allclose(probabilities(served), expected, atol=1e-5)
    assert served.description.class_labels == tuple(range(expected.shape[1]))


@pytest.mark.parametrize("last", ["softmax", "sigmoid", "logits"])
def test_exports_of_keras_are_served_as_it_says(last):
    served = serve((FOLDER / f"keras_{last}.onnx").read_bytes(), {"rows": KERAS["rows"]})
    expected = KERAS[last].astype(np.float64)
    if last == "logits":
        assert served.choice.kind == "logits"
        expected = softmax(expected, axis=1)
    elif last == "sigmoid":
        expected = np.hstack([1 - expected, expected])
    np.testing.assert_allclose(probabilities(served), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("last", "columns"),
    [("Softmax", 2), ("Softmax", 4), ("LogSoftmax", 2), ("LogSoftmax", 4), ("Sigmoid", 1)]
    + [(None, columns) for columns in (1, 2, 4)],
)
def test_networks_of_keras_and_torch_are_told_apart(last, columns):
    """tf2onnx and PyTorch write a product, a sum and the last function."""
    rng = np.random.default_rng(0)
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "b"], ["z" if last else "y"])]
    if last is not None:
        nodes.append(node(last, ["z"], ["y"]))
    weights = constant("w", rng.normal(size=(5, columns))), constant("b", rng.normal(size=columns))
    rows = rng.normal(size=(30, 5)).astype(np.float32)
    served = serve(make_model(nodes, initializers=weights), {"x": rows})
    logits = rows @ served_weights(weights) + served_bias(weights)
    if columns == 1:
        logits = np.hstack([0 * logits, logits])
    np.testing.assert_allclose(probabilities(served), softmax(logits, axis=1), atol=1e-5)


def served_weights(weights):
    return np.frombuffer(weights[0].raw_data, np.float32).reshape(5, -1)


def served_bias(weights):
    return np.frombuffer(weights[1].raw_data, np.float32)
