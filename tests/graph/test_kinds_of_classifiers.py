"""Kind and order of the classes of each classifier that exports to ONNX.

What is served is compared with the library's own probabilities; where the model is refused, the
message has both readings.
"""

from pathlib import Path

import numpy as np
import pytest
from classifier_files import skl2onnx_model
from graph_models import make_model, passthrough, resolve, serve, steps, value
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from service.errors import InvalidOnnxModel, ModelRule

FOLDER = Path(__file__).parents[1] / "data" / "onnx"
SCALED = StandardScaler()
LOGISTIC, TREE = LogisticRegression(max_iter=300), DecisionTreeClassifier(max_depth=4)
BOTH = [("a", LOGISTIC), ("b", TREE)]
ESTIMATORS = {
    "logistic": LOGISTIC,
    "forest": RandomForestClassifier(20, max_depth=6, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=5, random_state=0),
    "adaboost": AdaBoostClassifier(n_estimators=5, random_state=0),
    "tree": TREE,
    "neighbours": KNeighborsClassifier(7),
    "gaussian": GaussianNB(),
    "multinomial": make_pipeline(MinMaxScaler(clip=True), MultinomialNB()),
    "platt": CalibratedClassifierCV(SVC(random_state=0), ensemble=False, cv=3),
    "network": make_pipeline(SCALED, MLPClassifier((6,), max_iter=40)),
    "quadratic": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "sgd": make_pipeline(SCALED, SGDClassifier(loss="log_loss", random_state=0)),
    "one against the rest": OneVsRestClassifier(LOGISTIC),
    "voting": VotingClassifier(BOTH, voting="soft", flatten_transform=False),
}
KINDS = dict.fromkeys(("logistic", "network", "boosting"), "logits")
KINDS |= dict.fromkeys(("forest", "one against the rest"), "probabilities")
# With float64 skl2onnx writes graphs of mixed types for some, which ONNX Runtime does not load.
CASES = [(name, kind, "float32") for name in ESTIMATORS for kind in ("binary", "three")]
CASES += [(name, "binary", "float64") for name in sorted({*ESTIMATORS} - {"adaboost", "voting"})]


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


@pytest.mark.parametrize(("name", "kind", "dtype"), CASES)
def test_a_classifiers_probabilities_are_served_as_they_are(name, kind, dtype):
    rows, labels = data(kind, dtype)
    estimator = ESTIMATORS[name]
    zipmap = (kind, dtype) == ("binary", "float32")
    model = skl2onnx_model(estimator, rows, labels, zipmap=zipmap)
    served = serve(model, {"X": shaken(rows)})
    expected = estimator.predict_proba(shaken(rows))
    # A float32 threshold may send a row to another leaf: a row or two, not a share of them.
    near = np.abs(probabilities(served) - expected).max(axis=1) < 1e-3
    assert near.mean() > 0.97
    np.testing.assert_allclose(served["top_scores"].sum(axis=1), 1, atol=1e-5)
    assert served["top_scores"].min() >= 0
    assert served.description.class_labels == tuple(estimator.classes_.tolist())
    if dtype == "float32":
        assert served.choice.kind == KINDS.get(name, served.choice.kind)


def test_overconfident_binary_answers_stay_apart():
    """The exported probability is exactly 1 for many of them: 1 - p has no digits left."""
    rows, labels = data("binary", "float32")
    rows = 3 * SCALED.fit_transform(rows).astype(np.float32)
    estimator = LogisticRegression(C=1e6, max_iter=2000)
    served = serve(skl2onnx_model(estimator, rows, labels, zipmap=False), {"X": 3 * rows})
    surprise = np.logaddexp(0, -np.abs(estimator.decision_function(3 * rows.astype(np.float64))))
    assert (surprise < 1e-8).sum() > 50
    visible = surprise > 1e-37
    assert (served["neg_log_pmax"][visible] > 0).all()
    # The float32 model's own error in z, of about 1e-6 |z|, is that of its odds.
    np.testing.assert_allclose(served["neg_log_pmax"][visible], surprise[visible], rtol=1e-2)


@pytest.mark.parametrize("kind", ["binary", "three"])
@pytest.mark.parametrize("estimator", [LinearSVC(), RidgeClassifier(), SGDClassifier()])
def test_decision_scores_are_logits(estimator, kind):
    rows, labels = data(kind, "float32")
    served = serve(skl2onnx_model(estimator, rows, labels), {"X": shaken(rows)})
    assert served.choice.kind == "logits"
    answers = estimator.classes_[served["top_classes"][:, 0]]
    assert (answers == estimator.predict(shaken(rows))).mean() > 0.99


@pytest.mark.parametrize("names", [np.array([0, 1]), np.array(["bad", "good"])])
@pytest.mark.parametrize("zipmap", [True, False])
def test_columns_in_another_order_than_the_labels_are_refused(zipmap, names):
    """skl2onnx writes the two decision scores of an SVC in reverse order."""
    rows, labels = data("binary", "float32")
    model = skl2onnx_model(SVC(), rows, names[labels], zipmap=zipmap)
    with pytest.raises(InvalidOnnxModel, match=r"output\.kind") as caught:
        resolve(model, {"X": rows})
    assert caught.value.violations[0].rule == ModelRule.LABELS_DIFFER
    assert all(str(name) in str(caught.value) for name in names)
    assert resolve(model, {"X": rows}, kind="logits").kind == "logits"


PAIRED = [
    (SVC(decision_function_shape="ovo"), np.arange(150) // 30, "10 columns .* 5 classes"),
    (OneVsOneClassifier(LOGISTIC), np.arange(150) % 2, "sums to 1"),
]


@pytest.mark.parametrize(("estimator", "labels", "named"), PAIRED)
def test_scores_of_pairs_of_classes_are_refused(estimator, labels, named):
    rows, _ = data("three", "float32")
    model = skl2onnx_model(estimator, rows, labels, zipmap=False)
    with pytest.raises(InvalidOnnxModel, match=named):
        resolve(model, {"X": rows})


SHARES = softmax(np.random.default_rng(0).normal(size=(20, 3)), axis=1)
TO_ONE = {"inputs": [value("x", ["N", 2])], "outputs": [value("y", ["N", 1])]}
REGRESSOR = steps("y = ai.onnx.ml.LinearRegressor<coefficients=[0.5, 0.1]>(x)")
NORMALIZER = make_model(steps('y = ai.onnx.ml.Normalizer<norm="L1">(x)'))
UNCLEAR = [
    (passthrough(), 100 * SHARES, ("as logits", "sums to 100")),
    # One column on one side of a half.
    (passthrough(shape=["N", 1]), [[0.1], [0.2], [0.4]], ("as the logit of class 1",)),
    (NORMALIZER, SHARES - 0.5, ("as logits", "Normalizer")),
    (make_model(REGRESSOR, **TO_ONE), SHARES[:, :2] - 0.5, ("regression",)),
]


@pytest.mark.parametrize(("model", "rows", "named"), UNCLEAR)
def test_scores_of_an_unclear_kind_are_asked_about(model, rows, named):
    feeds = {"x": np.float32(rows)}
    with pytest.raises(InvalidOnnxModel) as caught:
        resolve(model, feeds)
    assert caught.value.violations[0].rule == ModelRule.UNCLEAR_KIND
    assert all(one in str(caught.value) for one in ("output.kind", *named))
    assert resolve(model, feeds, kind="logits").kind == "logits"


def test_a_sigmoid_on_one_side_of_a_half_is_a_probability():
    model = make_model(steps("s = Sigmoid(x); y = Identity(s)"))
    assert "sigmoid" in resolve(model, {"x": np.float32([[-3], [-2], [-1]])}).inferred


@pytest.mark.parametrize("stray", [-1.19e-7, -9e-4])
def test_probabilities_beyond_the_unit_interval_by_rounding_are_clipped(stray):
    positive = np.float32([[stray], [0.25], [0.75], [1 - stray]])
    pair = np.hstack([1 - positive, positive])
    for rows in (positive, pair, np.hstack([pair, 0 * positive])):
        served = serve(passthrough(shape=["N", rows.shape[1]]), {"x": rows})
        assert served.choice.kind == "probabilities"
        assert (served["top_scores"].min() >= 0, served["top_scores"].max()) == (True, 1)
        np.testing.assert_array_equal(served["top_classes"][:, 0], [0, 0, 1, 1])


def references(name):
    with np.load(FOLDER / f"{name}.npz") as archive:
        return dict(archive)


BOOSTED = references("boosted_references") | references("histogram_references")  # of the same rows
KERAS, TORCH = references("keras_references"), references("references")
POSITIVE = KERAS["sigmoid"].astype(np.float64)
# Each file of a library: what it takes, the rows, and the probabilities by the library itself.
LIBRARIES = {
    f"{library}_{kind}_{form}": (takes, BOOSTED["rows"], BOOSTED[f"{library}_{kind}"])
    for kind in ("binary", "three")
    for library, form, takes in (
        *(("lightgbm", "maps", "rows"), ("lightgbm", "matrix", "rows")),
        *(("xgboost", "matrix", "rows"), ("catboost", "maps", "features")),
        *(("histogram", "maps", "X"), ("histogram", "matrix", "X")),
    )
}
LIBRARIES |= {
    "keras_softmax": ("rows", KERAS["rows"], KERAS["softmax"]),
    "keras_sigmoid": ("rows", KERAS["rows"], np.hstack([1 - POSITIVE, POSITIVE])),
    "keras_logits": ("rows", KERAS["rows"], softmax(np.float64(KERAS["logits"]), axis=1)),
    "torch_dynamo_18_fixed": ("images", TORCH["images"][:4], softmax(TORCH["logits"][:4], axis=1)),
}
LIBRARIES |= {
    name: ("images", TORCH["images"], softmax(TORCH["logits"], axis=1))
    for name in ("torch_legacy_11", "torch_legacy_17_softmax", "torch_dynamo_23_softmax")
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_exports_of_other_libraries_are_served_as_these_say(name):
    takes, rows, expected = LIBRARIES[name]
    served = serve((FOLDER / f"{name}.onnx").read_bytes(), {takes: rows})
    np.testing.assert_allclose(probabilities(served), expected, atol=1e-5)
    choice, description = served.choice, served.description
    if name.startswith(("torch", "keras_logits")):
        assert choice.kind == "logits"
        assert (choice.tensor != choice.name) == name.endswith("softmax")
        assert description.fixed_batch == (4 if name.endswith("fixed") else None)
    elif not name.startswith("keras"):
        assert description.class_labels == tuple(range(expected.shape[1]))
