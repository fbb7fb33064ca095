"""A calibrator in a program: what it keeps, flags and refuses."""

import pickle

import numpy as np
import pytest
from report_scenarios import outputs
from running_service import calibrated, npz

from howsure import Calibrator
from howsure.calibrator import NotFittedError
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.selective import SelectiveTarget

CHEAP = {"measures": ("margin",), "folds": 2, "bins": 5}


@pytest.fixture(scope="module")
def logits() -> tuple[np.ndarray, np.ndarray]:
    return tuple(outputs(400, seed=1, n_classes=6, wrong=0.05).values())


@pytest.fixture(scope="module")
def fitted(logits) -> Calibrator:
    return Calibrator(kind="logits", **CHEAP | {"measures": ("learned",)}).fit(*logits)


def test_a_row_is_answered_alike_in_any_company(fitted, logits) -> None:
    values = logits[0][:50]
    together = fitted.answer(values)
    alone = [fitted.answer(values[row : row + 1]) for row in range(50)]
    for name in ("classes", "class_probability", "probability", "interval", "out_of_distribution"):
        one_by_one = np.concatenate([getattr(one, name) for one in alone])
        np.testing.assert_array_equal(getattr(together, name), one_by_one)


def test_it_is_kept_in_a_file(fitted, logits) -> None:
    again = pickle.loads(pickle.dumps(fitted)).answer(logits[0])  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(again.probability, fitted.answer(logits[0]).probability)


def test_no_rows_have_no_answers(fitted) -> None:
    answers = fitted.answer(np.empty((0, 6)))
    assert answers.probability.shape == (0,)
    assert answers.interval.shape == (0, 2)


def test_what_is_accepted_and_flagged_follows_the_thresholds(logits) -> None:
    options = CHEAP | {"selective": (SelectiveTarget(0.2),)}
    calibrator = Calibrator(kind="logits", **options).fit(*logits)
    answers = calibrator.answer(logits[0])
    accepted = answers.top[1].uncertainty <= calibrator.threshold(0.2)
    np.testing.assert_array_equal(answers.accept[0.2], accepted)
    assert 0 < accepted.sum() < len(accepted)
    np.testing.assert_array_equal(calibrator.abstain(logits[0], max_risk=0.2), ~accepted)
    levels = calibrator.fitted.events[1].measures["margin"].ood_thresholds
    flagged = answers.top[1].uncertainty > np.float32(levels[0.99])
    np.testing.assert_array_equal(answers.out_of_distribution, flagged)
    assert 0 < flagged.sum() < len(flagged)
    with pytest.raises(ValueError, match=r"max_risk must be one of those fitted \(0.2\), not 0.1"):
        calibrator.abstain(logits[0], max_risk=0.1)


def test_a_set_for_evaluation_judges_the_fit(logits) -> None:
    values, labels = logits
    calibrator = Calibrator(**CHEAP | {"folds": 10})
    calibrator.fit(values[:7], labels[:7], evaluation=(values[200:], labels[200:]))
    assert calibrator.fitted.model_scores["evaluation"].n_samples == 200
    assert calibrator.notes[0] == "7 calibration samples make 7 folds, not 10."


ROW = [[0.0, 1.0, 2.0]]
REFUSED = [
    ({}, ROW, [0, 0], r"labels"),
    ({}, ROW, [3], r"labels"),
    ({}, [1.0, 2.0], [0, 1], r"logits must have shape \(n_samples, n_classes\), not \(2,\)"),
    ({}, [[1.0], [2.0]], [0, 0], r"logits must have shape"),
    ({"decision_threshold": 0.3}, ROW, [0], r"decision_threshold is for two classes, not 3"),
    # What a bins document could not hold.
    ({"prior_strength": 2e6}, ROW, [0], r"prior_strength must be 1e-09 to 1e\+06, not 2000000.0"),
    ({"interval": IntervalOptions(level=1 - 1e-10)}, ROW, [0], r"level must be at most 0.99"),
    ({"selective": (SelectiveTarget(1e-10),)}, ROW, [0], r"max_risk and delta must be at least"),
    ({}, [[0.0, np.nan, 0.0]], [0], r"logits\[0\]\[1\]: expected a finite number, got nan"),
    ({}, [[0.2, 0.3, 0.5]], [0], r'make Calibrator\(kind="probabilities"\)'),
    ({"kind": "probabilities"}, ROW, [0], r"probabilities\[0\]\[2\]: expected a probability"),
    ({"kind": "probabilities"}, [[0.5, 0.4]], [0], r"probabilities\[0\]: .*sum to 1"),
]


@pytest.mark.parametrize(("options", "values", "labels", "message"), REFUSED)
def test_what_breaks_a_rule_is_named(options, values, labels, message) -> None:
    with pytest.raises(ValueError, match=message):
        Calibrator(**{"kind": "logits"} | options).fit(values, labels)


def test_options_are_checked_by_the_fit(logits) -> None:
    with pytest.raises(ValueError, match="folds must be an integer from 2, not 1"):
        Calibrator(folds=1).fit(*logits)
    with pytest.raises(ValueError, match="kind must be one of logits, probabilities, scores"):
        Calibrator("votes").fit(*logits)
    with pytest.raises(ValueError, match="labels must say of each score"):
        Calibrator("scores").fit([0.5, 0.7], [1, 2])


@pytest.mark.parametrize("measure", ["dropout_variance", "gradient_norm", "supplied:x", "output:y"])
def test_a_measure_that_needs_more_than_outputs_is_refused(logits, measure) -> None:
    with pytest.raises(ValueError, match=f"computable from outputs alone, not {measure}"):
        Calibrator(measures=("margin", measure)).fit(*logits)


def test_a_document_that_breaks_a_rule_is_not_saved(logits, tmp_path) -> None:
    values, labels = logits
    names = np.array(["a" * 201, *"bcdef"])
    calibrator = Calibrator(**CHEAP, classes=tuple(names)).fit(values, names[labels])
    with pytest.raises(ValueError, match=r"^classes\[0\]: expected `str` of length <= 200$"):
        calibrator.save(tmp_path / "bins.json")
    twins = (SelectiveTarget(0.1), SelectiveTarget(0.1, delta=0.01))
    calibrator = Calibrator(**CHEAP, selective=twins).fit(values, labels)
    with pytest.raises(ValueError, match=r"^selective: the same max_risk is named twice$"):
        calibrator.push("http://localhost:9", name="never-sent")
    assert not list(tmp_path.iterdir())


def test_before_the_fit_there_is_no_answer(fitted) -> None:
    with pytest.raises(NotFittedError, match="call fit"):
        Calibrator().predict(ROW)
    with pytest.raises(ValueError, match=r"logits must have shape \(n_samples, 6\), not \(1, 3\)"):
        fitted.predict(ROW)


@pytest.mark.parametrize("of_service", [False, True], ids=["saved", "of a service"])
def test_a_bins_document_is_a_calibrator(client, fitted, logits, tmp_path, of_service) -> None:
    path = tmp_path / "bins.json"
    if of_service:
        made = calibrated(
            client, {"name": "of-bins"}, calibration=npz(logits=logits[0], labels=logits[1])
        )
        path.write_bytes(client.get(f"/calibrations/{made['id']}/bins").content)
    else:
        assert fitted.save(path) == path
    loaded = Calibrator.load(path)
    again = Calibrator.load(loaded.save(tmp_path / "again.json"))
    assert again.document_ == loaded.document_
    if not of_service:
        np.testing.assert_array_equal(
            loaded.predict_proba(logits[0]), fitted.predict_proba(logits[0])
        )
        assert (loaded.kind, loaded.top_k) == (fitted.kind, (1, 5))
    with pytest.raises(NotFittedError, match="neither scores nor a report"):
        loaded.report()
    path.write_bytes(path.read_bytes().replace(b'"count"', b'"counts"', 1))
    with pytest.raises(ValueError, match=r"tables\[0\].bins\[0\].counts: there is no such key"):
        Calibrator.load(path)


def test_a_service_takes_it_over(client, fitted, logits) -> None:
    rows = logits[0][:40]
    made = fitted.push(str(client.base_url), name="pushed")
    assert (made.name, made.status) == ("pushed", "succeeded")
    answer = client.post("/predict", json={"calibration": made.id, "logits": rows.tolist()})
    probabilities = [row["top1"]["probability"] for row in answer.json()["predictions"]]
    assert probabilities == fitted.answer(rows).probability.tolist()
