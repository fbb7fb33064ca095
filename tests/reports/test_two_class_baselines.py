"""With two classes, baselines are those of scikit-learn on the probability of class 1."""

from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest
from graph_models import passthrough
from numpy.typing import NDArray
from running_service import calibrated, npz
from scipy.special import expit, log_expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

Array = NDArray[np.float64]
N_SAMPLES = 3000
CONFIG: dict[str, Any] = {"measures": ["neg_log_topk_mass", "learned"], "folds": 5}
BINARY = ("beta_calibration", "quadratic_logistic", "isotonic")


class Drawn(NamedTuple):
    """Log-odds of class 1 that a model states, and the labels."""

    log_odds: Array
    labels: NDArray[np.int64]


def fraud(n_samples: int, seed: int) -> Drawn:
    """A model trained on few of the negatives: it is far too sure of class 1 alone."""
    rng = np.random.default_rng(seed)
    true = -4.0 + 2.5 * rng.normal(size=n_samples)
    stated = np.float32(1.5 * (true + 2.5) + 0.7 * rng.normal(size=n_samples))
    return Drawn(stated.astype(np.float64), (rng.random(n_samples) < expit(true)).astype(np.int64))


KNOWN, NEW = fraud(N_SAMPLES, 1), fraud(8000, 2)


def features(name: str, x: Array) -> Array:
    if name == "quadratic_logistic":
        return np.stack([x, x**2], axis=1)
    return np.stack([log_expit(x), -log_expit(-x)], axis=1)


def by_scikit_learn(name: str, known: Drawn, x: Array) -> Array:
    """Return P(class 1) at ``x``, as its users fit it."""
    if name == "isotonic":
        return IsotonicRegression(out_of_bounds="clip").fit(*known).predict(x)
    fitted = LogisticRegression(C=1e6, tol=1e-9, max_iter=10_000)
    fitted.fit(features(name, known.log_odds), known.labels)
    return fitted.predict_proba(features(name, x))[:, 1]


def losses(drawn: Drawn, p: Array) -> dict[str, float]:
    """Return the losses of the probability that the predicted class is right."""
    is_one = drawn.log_odds > 0
    correct = is_one == drawn.labels
    said = np.where(is_one, p, 1 - p)
    clipped = np.clip(said, 0.5 / N_SAMPLES, 1 - 0.5 / N_SAMPLES)
    nll = -np.log(np.where(correct, clipped, 1 - clipped)).mean()
    return {"nll": nll, "brier": np.square(said - correct).mean()}


def upload(kind: str, drawn: Drawn) -> bytes:
    logits = np.stack([np.zeros(len(drawn.labels)), drawn.log_odds], axis=1)
    values = expit(np.stack([-drawn.log_odds, drawn.log_odds], axis=1))
    by_kind = {"probabilities": values, "logits": logits, "inputs": logits.astype(np.float32)}
    return npz(**{kind: by_kind[kind], "labels": drawn.labels})


@pytest.fixture(scope="module", params=["probabilities", "inputs"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def event(client: httpx.Client, kind: str) -> dict[str, Any]:
    model = passthrough(shape=("N", 2)).SerializeToString() if kind == "inputs" else None
    sets = {"calibration": upload(kind, KNOWN), "evaluation": upload(kind, NEW)}
    made = calibrated(client, CONFIG | {"name": f"fraud-{kind}"}, model=model, **sets)
    return client.get("/report", params={"calibration": made["id"]}).json()["events"]["1"]


@pytest.mark.parametrize("name", BINARY)
def test_losses_are_those_of_scikit_learn(event, name: str) -> None:
    """On new samples, and cross-validated."""
    baseline = event["baselines"][name]
    expected = losses(NEW, by_scikit_learn(name, KNOWN, NEW.log_odds))
    assert {score: baseline["evaluation"][score] for score in expected} == pytest.approx(
        expected, abs=1e-3
    )
    p = np.empty(N_SAMPLES)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for fitted, held_out in folds.split(KNOWN.log_odds, KNOWN.labels):
        known = Drawn(KNOWN.log_odds[fitted], KNOWN.labels[fitted])
        p[held_out] = by_scikit_learn(name, known, KNOWN.log_odds[held_out])
    for score, loss in losses(KNOWN, p).items():
        assert baseline["scores"][score]["mean"] == pytest.approx(loss, abs=3e-3)


def test_the_served_measure_ties_with_them(event) -> None:
    """It knows the predicted class too; the confidence alone, of which bins are made, does not."""
    assert event["served"] == "learned"
    served = event["measures"]["learned"]["evaluation"]["nll"]
    for name in BINARY:
        assert event["baselines"][name]["evaluation"]["nll"] == pytest.approx(served, rel=0.06)
    assert event["measures"]["neg_log_topk_mass"]["evaluation"]["nll"] > 1.2 * served
    assert all(name in event["verdict"]["fitted_on"] for name in BINARY)
