"""With two classes, baselines are those of scikit-learn on the probability of class 1."""

import numpy as np
import pytest
from sample_strategies import fit_of, records_of
from scipy.special import expit, log_expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

N_SAMPLES = 3000
BINARY = ("beta_calibration", "quadratic_logistic", "isotonic")


def fraud(n_samples, seed):
    """Log-odds of class 1 and labels, by a model that is far too sure of class 1 alone."""
    rng = np.random.default_rng(seed)
    true = -4.0 + 2.5 * rng.normal(size=n_samples)
    stated = np.float32(1.5 * (true + 2.5) + 0.7 * rng.normal(size=n_samples))
    return stated.astype(np.float64), (rng.random(n_samples) < expit(true)).astype(np.int64)


KNOWN, NEW = fraud(N_SAMPLES, 1), fraud(8000, 2)


def features(name, x):
    if name == "quadratic_logistic":
        return np.stack([x, x**2], axis=1)
    return np.stack([log_expit(x), -log_expit(-x)], axis=1)


def by_scikit_learn(name, log_odds, labels, x):
    """Return P(class 1) at ``x``, as its users fit it."""
    if name == "isotonic":
        return IsotonicRegression(out_of_bounds="clip").fit(log_odds, labels).predict(x)
    fitted = LogisticRegression(C=1e6, tol=1e-9, max_iter=10_000)
    return fitted.fit(features(name, log_odds), labels).predict_proba(features(name, x))[:, 1]


def losses(log_odds, labels, p):
    """Return the losses of the probability that the predicted class is right."""
    is_one = log_odds > 0
    correct, said = is_one == labels, np.where(is_one, p, 1 - p)
    clipped = np.clip(said, 0.5 / N_SAMPLES, 1 - 0.5 / N_SAMPLES)
    nll = -np.log(np.where(correct, clipped, 1 - clipped)).mean()
    return {"nll": nll, "brier": np.square(said - correct).mean()}


@pytest.fixture(scope="module", params=["logits", "probabilities"])
def event(request):
    is_logits = request.param == "logits"

    def recorded(log_odds, labels):
        low, high = (0 * log_odds, log_odds) if is_logits else log_expit([-log_odds, log_odds])
        return records_of(np.stack([low, high], axis=1), labels, logits=is_logits)

    options = {"measures": ("neg_log_topk_mass", "learned"), "folds": 5, "bins": 5}
    return fit_of(recorded(*KNOWN), evaluation=recorded(*NEW), **options).events[1]


@pytest.mark.parametrize("name", BINARY)
def test_losses_are_those_of_scikit_learn(event, name):
    """On new samples, and cross-validated."""
    baseline, p = event.baselines[name], np.empty(N_SAMPLES)
    expected = losses(*NEW, by_scikit_learn(name, *KNOWN, NEW[0]))
    found = {score: baseline.evaluation[score] for score in expected}
    assert found == pytest.approx(expected, abs=1e-3)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for fitted, held_out in folds.split(*KNOWN):
        p[held_out] = by_scikit_learn(name, *(part[fitted] for part in KNOWN), KNOWN[0][held_out])
    found = {score: baseline.scores[score].mean for score in expected}
    assert found == pytest.approx(losses(*KNOWN, p), abs=3e-3)


def test_the_served_measure_ties_with_them(event):
    """It knows the predicted class too; the confidence alone, of which bins are made, does not."""
    assert event.served == "learned"
    served = event.measures["learned"].evaluation["nll"]
    for name in BINARY:
        assert event.baselines[name].evaluation["nll"] == pytest.approx(served, rel=0.06)
    assert event.measures["neg_log_topk_mass"].evaluation["nll"] > 1.2 * served
    assert {event.baselines[name].fitted_on for name in BINARY} == {"class_1"}
