"""A calibrator in a program follows the conventions of scikit-learn, where they apply."""

import numpy as np
import pandas as pd
import pytest
from report_scenarios import outputs
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from howsure import Calibrator

CHEAP = {"measures": ("margin",), "folds": 2, "bins": 5}


@pytest.fixture(scope="module")
def logits() -> tuple[np.ndarray, np.ndarray]:
    return tuple(outputs(400, seed=1, n_classes=6, wrong=0.05).values())


def test_classes_have_the_names_of_the_labels(logits) -> None:
    values, labels = logits
    names = np.array([*"fedcba"])
    named = Calibrator(**CHEAP, classes=names).fit(values, names[labels])
    numbered = Calibrator(**CHEAP).fit(values, labels)
    np.testing.assert_array_equal(named.predict_proba(values), numbered.predict_proba(values))
    np.testing.assert_array_equal(named.predict(values), names[numbered.predict(values)])
    assert named.report().provenance.config["classes"] == names.tolist()
    with pytest.raises(ValueError, match="labels are names: tell Calibrator"):
        Calibrator(**CHEAP).fit(values, names[labels])
    with pytest.raises(ValueError, match="classes must name each of 6 columns once"):
        Calibrator(**CHEAP, classes=["a", "b"]).fit(values, labels)
    with pytest.raises(ValueError, match="labels must be among classes"):
        Calibrator(**CHEAP, classes=names).fit(values, labels)


def test_a_frame_keeps_the_order_of_its_columns(logits) -> None:
    values, labels = logits
    frame = pd.DataFrame(values, columns=[*"abcdef"])
    calibrator = Calibrator(**CHEAP).fit(frame, pd.Series(labels))
    assert calibrator.feature_names_in_.tolist() == [*"abcdef"]
    np.testing.assert_array_equal(calibrator.predict(frame), calibrator.predict(values))
    with pytest.raises(ValueError, match="The feature names should match"):
        calibrator.predict(frame[[*"fedcba"]])


# Why these do not apply; each other check of scikit-learn does.
REASONS = {
    "its sets have more classes than columns": "estimators_overwrite_params "
    "estimators_fit_returns_self readonly_memmap_input sample_weights_pandas_series "
    "sample_weights_not_an_array sample_weights_shape sample_weights_not_overwritten "
    "classifier_data_not_an_array",
    "it calibrates scores, and does not learn classes from features": "classifiers_train "
    "classifiers_one_label classifiers_one_label_sample_weights",
    "it refuses this with a message of its own": "all_zero_sample_weights_error dtype_object "
    "estimators_empty_data_messages estimators_nan_inf classifiers_regression_target "
    "fit2d_1feature fit2d_predict1d sample_weight_equivalence_on_dense_data",
    "it needs classes= for labels that are names": "classifiers_classes",
    "its NotFittedError is its own: scikit-learn may be missing": "estimators_unfitted",
    "a column of labels is taken without a warning": "supervised_y_2d",
}
NOT_APPLICABLE = {f"check_{name}": why for why, names in REASONS.items() for name in names.split()}


@pytest.mark.filterwarnings("ignore")
def test_it_follows_the_conventions_of_scikit_learn() -> None:
    calibrator = Calibrator(measures=("margin",), folds=2, bins=3, lookup="step")
    results = check_estimator(
        calibrator, expected_failed_checks=NOT_APPLICABLE, on_fail="raise", on_skip=None
    )
    by_status = {
        status: {one["check_name"] for one in results if one["status"] == status}
        for status in ("passed", "xfail")
    }
    assert by_status["xfail"] == set(NOT_APPLICABLE)
    assert len(by_status["passed"]) > 30
    copy = clone(calibrator.set_params(folds=3))
    assert repr(copy) == repr(calibrator)
    with pytest.raises(ValueError, match="there is no parameter 'depth'"):
        calibrator.set_params(depth=3)
