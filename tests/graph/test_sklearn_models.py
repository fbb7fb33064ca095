"""Models as skl2onnx writes them, against scikit-learn's own answers."""

import numpy as np
import pytest
from classifier_files import skl2onnx_model
from graph_models import reference, serve
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

IMAGES, DIGITS = load_digits(return_X_y=True)
IMAGES = (IMAGES[:300] / 16).astype(np.float32)
DIGITS = DIGITS[:300]
LABELS = {
    "integers": DIGITS,
    "strings": np.array([f"digit {digit}" for digit in DIGITS]),
    "binary": (DIGITS < 5).astype(int),
}
ESTIMATORS = {
    "logistic": lambda: LogisticRegression(C=100, max_iter=200),
    "network": lambda: MLPClassifier((8,), max_iter=30, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0),
}


def export(estimator, labels, **options):
    return skl2onnx_model(estimator, IMAGES, labels, **options)


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("labels", list(LABELS))
@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_probabilities_are_read_before_their_last_function(name, labels, zipmap):
    estimator = ESTIMATORS[name]()
    served = serve(export(estimator, LABELS[labels], zipmap=zipmap), {"X": IMAGES})
    assert served.choice.kind == "logits"
    probabilities = estimator.predict_proba(IMAGES)
    np.testing.assert_allclose(softmax(served["scores"], axis=1), probabilities, atol=1e-5)
    np.testing.assert_array_equal(served["top_classes"][:, 0], probabilities.argmax(axis=1))
    for column, expected in reference(served["scores"])[2].items():
        np.testing.assert_allclose(served[column], expected, rtol=1e-4, atol=1e-37, err_msg=column)
    assert served.description.class_labels == tuple(estimator.classes_.tolist())


def test_overconfident_binary_answers_stay_apart():
    """The exported probability is exactly 1 for many of them: 1 - p has no digits left."""
    model = LogisticRegression(C=1e6, max_iter=2000)
    served = serve(export(model, LABELS["binary"], zipmap=False), {"X": 3 * IMAGES})
    surprise = np.logaddexp(0, -np.abs(model.decision_function(3 * IMAGES.astype(np.float64))))
    assert (surprise < 1e-8).sum() > 50
    visible = surprise > 1e-37
    assert (served["neg_log_pmax"][visible] > 0).all()
    # The float32 model's own error in z, of about 1e-6 |z|, is that of its odds.
    np.testing.assert_allclose(served["neg_log_pmax"][visible], surprise[visible], rtol=1e-2)


@pytest.mark.parametrize("zipmap", [True, False])
def test_a_forests_votes_are_probabilities(zipmap):
    forest = RandomForestClassifier(7, max_depth=4, random_state=0)
    served = serve(export(forest, DIGITS, zipmap=zipmap), {"X": IMAGES})
    assert served.choice.kind == "probabilities"
    np.testing.assert_allclose(served["scores"], forest.predict_proba(IMAGES), atol=1e-6)
    with np.errstate(divide="ignore"):
        expected = reference(np.log(served["scores"].astype(np.float64)))[2]
    np.testing.assert_allclose(served["entropy"], expected["entropy"], rtol=1e-4)
    assert served.description.class_labels == tuple(range(10))


def test_one_against_the_rest_is_no_softmax():
    estimator = OneVsRestClassifier(LogisticRegression(max_iter=200))
    served = serve(export(estimator, DIGITS, zipmap=False), {"X": IMAGES})
    assert served.choice.kind == "probabilities"
    np.testing.assert_allclose(served["scores"], estimator.predict_proba(IMAGES), atol=1e-5)
    assert served.description.class_labels == tuple(range(10))


@pytest.mark.parametrize("labels", ["integers", "binary"])
def test_decision_scores_under_the_name_of_probabilities_are_logits(labels):
    estimator = LinearSVC()
    model = export(estimator, LABELS[labels])
    served = serve(model, {"X": IMAGES})
    assert served.choice.name == "probabilities"
    assert served.choice.kind == "logits"
    scores = estimator.decision_function(IMAGES)
    if labels == "binary":
        scores = np.column_stack([np.zeros_like(scores), scores])
    np.testing.assert_allclose(served["scores"], scores, atol=1e-4)
