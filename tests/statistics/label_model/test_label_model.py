"""The model of the labels: a distribution over classes, cross-fitted, found where there is one."""

from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import calibrated, records_of
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax, xlogy
from sklearn.metrics import roc_auc_score

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.label_model.fit import fit_label_model, labelled_scores
from howsure.statistics.label_model.likelihood import Axes, Likelihood, Scaling
from howsure.statistics.label_model.model import LabelModel
from howsure.statistics.label_model.recorded import recorded_odds
from howsure.statistics.records.order import in_canonical_order, stratified_folds

N_CLASSES = 6


def uneven(n_samples, *, seed=0):
    """Records of a model that is wrong in half of what it says of its first three classes."""
    logits, labels = calibrated(n_samples, n_classes=N_CLASSES, seed=seed)
    rng = np.random.default_rng(seed)
    wrong = (logits.argmax(axis=1) < 3) & (rng.random(n_samples) < 0.5)
    labels = np.where(wrong, rng.integers(0, N_CLASSES, n_samples), labels)
    return in_canonical_order(records_of(logits, labels))


def fitted(records, *, n_classes=N_CLASSES, folds=None):
    if folds is None:
        folds = stratified_folds(records.hits(1), records.tie_key, n_folds=10)
    return fit_label_model(records, folds, n_classes=n_classes, top_k=(1,))[1]


def random_model(n_classes, m, *, floor, seed=0):
    rng, square = np.random.default_rng(seed), (n_classes, n_classes)
    complete = m == n_classes
    return LabelModel(
        n_recorded=m,
        temperature=1.3 if complete else np.geomspace(0.25, 8.0, 24)[12],
        floor=floor,
        offset=rng.normal(size=n_classes),
        slope=rng.normal(size=n_classes) / 5,
        mixing=rng.normal(size=square) / 9 if complete else np.empty((0, 0)),
        confusion=rng.normal(size=square) if complete else np.empty((0, 0)),
    )


@pytest.mark.parametrize(("n_classes", "factor"), [(6, 12.0), (40, 0.03)])
def test_logits_on_another_scale_lose_little(n_classes, factor):
    """As cosines, or a sum over models: its log-odds find errors as those of the plain logits."""
    logits, labels = calibrated(1500, n_classes=n_classes, seed=3)
    losses = []
    for scale in (1.0, factor):
        records = in_canonical_order(records_of(logits * scale, labels))
        fit = fitted(records, n_classes=n_classes)
        hits = records.hits(1)
        losses.append(np.logaddexp(0.0, np.where(hits, 1, -1) * fit.uncertainty).mean())
    assert losses[1] < losses[0] + 0.01


SUMS = [(2, 2, 1e-3), (7, 7, 0.0), (32, 32, 1e-3), (33, 10, 0.0), (33, 10, 1e-3), (200, 12, 1e-3)]


@pytest.mark.parametrize(("n_classes", "top", "floor"), SUMS)
def test_probabilities_of_all_labels_sum_to_one(n_classes, top, floor):
    """A label beyond the recorded classes has its share of their rest."""
    logits = np.random.default_rng(1).normal(size=(40, n_classes)) * 3
    model = random_model(n_classes, top, floor=floor)
    total = np.zeros(40)
    for label in range(n_classes):
        records = records_of(logits, np.full(40, label), top_k=(1, top) if top == 12 else (1,))
        odds, scaling = recorded_odds(model, records), Scaling(model.temperature, floor)
        samples = labelled_scores(records, n_classes)
        inside = records.top_classes == label
        own = np.where(
            inside.any(axis=1),
            odds.eta[np.arange(40), inside.argmax(axis=1)],
            samples.label_u(scaling, samples.scaled(scaling)[0]),
        )
        whole = np.exp(np.concatenate([odds.eta, odds.rest], axis=1)).sum(axis=1)
        total += np.exp(own) / whole
    np.testing.assert_allclose(total, 1.0, atol=3e-4 if n_classes > 32 else 1e-6)


def test_formula_and_events_are_those_of_its_definition():
    rng = np.random.default_rng(2)
    logits, model = rng.normal(size=(50, 6)) * 2, random_model(6, 6, floor=0.01)
    p = softmax(logits, axis=1)
    u = log_softmax(np.log(p + 0.01) / 1.3, axis=1)
    first = p.argmax(axis=1)
    eta = (1 + model.slope) * u + model.offset + u @ model.mixing + model.confusion[first]
    expected, order = softmax(eta, axis=1), np.argsort(-p, axis=1)
    records = records_of(logits, np.zeros(50, np.int64), top_k=(1, 3))
    odds = recorded_odds(model, records)
    for k in (1, 3):
        mass = np.take_along_axis(expected, order[:, :k], axis=1).sum(axis=1)
        np.testing.assert_allclose(odds.log_odds(k), np.log(mass / (1 - mass)), rtol=1e-4)
    ranked = np.take_along_axis(expected, order, axis=1)
    shares = ranked[:, 1:] / (1 - ranked[:, :1])
    np.testing.assert_allclose(odds.shares()[:, 1:], shares, rtol=1e-5)


@pytest.mark.parametrize(("n_classes", "m"), [(2, 2), (9, 9), (32, 32), (100, 10)])
def test_answers_are_the_same_in_any_batch(n_classes, m):
    rng = np.random.default_rng(3)
    p = softmax(rng.normal(size=(500, m)) * 4, axis=1).astype(np.float32)
    classes = np.stack([rng.permutation(n_classes)[:m] for _ in range(500)])
    rest = rng.normal(size=(500, int(m < n_classes))).astype(np.float32)
    model = random_model(n_classes, m, floor=1e-4)
    whole = model.odds(classes, p, rest)
    for start, stop in ((0, 1), (7, 8), (3, 20), (250, 500)):
        rows = slice(start, stop)
        part = model.odds(classes[rows], p[rows], rest[rows])
        assert np.array_equal(part.uncertainty(1), whole.uncertainty(1)[rows])
        assert np.array_equal(part.shares(), whole.shares()[rows])


def test_coefficients_have_the_largest_posterior():
    """Found by another method on the definition."""
    samples = labelled_scores(uneven(300), N_CLASSES)
    scaling, still = Scaling(1.2, 1e-3), Axes(np.zeros(N_CLASSES), np.eye(N_CLASSES))
    likelihood = Likelihood(samples, scaling, still)
    scales = {"offset": 0.3, "slope": 0.2, "mixing": 0.1, "confusion": 0.5}
    mode = likelihood.mode(scales, {})
    shapes = {name: values.shape for name, values in mode.items()}
    ends = np.cumsum([values.size for values in mode.values()])[:-1]
    p = np.zeros((300, N_CLASSES))
    np.put_along_axis(p, samples.scores.classes, np.exp(samples.scores.log_p), axis=1)
    u = log_softmax(np.log(p + 1e-3) / 1.2, axis=1)
    first = samples.scores.classes[:, 0]

    def loss(x):
        b, v, mixing, confusion = (
            part.reshape(shape)
            for part, shape in zip(np.split(x, ends), shapes.values(), strict=True)
        )
        log_p = log_softmax((1 + v) * u + b + u @ mixing + confusion[first], axis=1)
        own = log_p[np.arange(300), samples.label]
        penalties = zip(scales.values(), (b, v, mixing, confusion), strict=True)
        return -own.sum() + sum(np.sum(c**2) / s**2 / 2 for s, c in penalties)

    at = np.concatenate([values.ravel() for values in mode.values()])
    best = minimize(loss, at, method="BFGS", options={"gtol": 1e-2})
    assert loss(np.zeros_like(at)) - best.fun > 10
    assert loss(at) == pytest.approx(best.fun, abs=0.02)


def test_no_coefficient_depends_on_a_label():
    records = uneven(400)
    folds = stratified_folds(records.hits(1), records.tie_key, n_folds=10)
    row = np.flatnonzero(folds == 4)[0]
    other = records.label.copy()
    other[row] = (other[row] + 1) % N_CLASSES
    before, after = (fitted(one, folds=folds) for one in (records, replace(records, label=other)))
    held = folds == 4
    np.testing.assert_allclose(before.uncertainty[held], after.uncertainty[held], atol=0.02)
    changed = np.abs(before.uncertainty - after.uncertainty)
    assert changed[~held].max() > changed[held].max()


def test_classes_that_are_worse_than_they_look_are_found():
    """Classes of the model that no sample has get no effect."""
    records = uneven(3000)
    fit = fitted(records)
    counts = np.bincount(records.top_classes[:, 0], minlength=N_CLASSES)
    assert fit.class_counts.tolist() == counts.tolist()
    assert (fit.class_effects[:3] < -0.3).all()
    assert (fit.class_effects[3:] > 0.3).all()
    new = uneven(6000, seed=9)
    learned = recorded_odds(fit.model, new).uncertainty(1)
    mass = new.uncertainty["neg_log_topk_mass_1"]
    assert roc_auc_score(~new.hits(1), learned) > roc_auc_score(~new.hits(1), mass) + 0.02


def test_shuffled_labels_teach_no_class():
    """The loss of new samples is that of the best temperature within noise."""
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(4600, N_CLASSES))
    labels = rng.integers(0, N_CLASSES, 4600)
    fit = fitted(in_canonical_order(records_of(logits[:600], labels[:600])))
    odds = recorded_odds(fit.model, records_of(logits[600:], labels[600:]))
    probabilities = softmax(odds.eta, axis=1)
    by_class = np.empty_like(probabilities)
    order = np.argsort(-logits[600:], axis=1)
    np.put_along_axis(by_class, order, probabilities, axis=1)
    loss = -np.log(by_class[np.arange(4000), labels[600:]]).mean()
    assert loss <= 1.02 * np.log(N_CLASSES)


def excess_of(records, new, truth):
    """Return the excess NLL over the truth of new samples, of a curve on the fitted measure."""
    fit, options = fitted(records), {"lookup": "smooth", "measure": "learned"}
    table = fit_bin_table(fit.uncertainty, records.hits(1), n_bins=5, **options)
    q = table.look_up(recorded_odds(fit.model, new).uncertainty(1)).probability
    return np.mean(xlogy(truth, truth / q) + xlogy(1 - truth, (1 - truth) / (1 - q)))


@pytest.mark.parametrize("n_samples", [200, 2000])
def test_does_no_harm_to_a_calibrated_model(n_samples):
    """Excess NLL over the truth: at most the d / 2n of a fit of d coefficients without penalty.

    There are a temperature, ten splines and a quadratic, and one for each class, which must first
    prove their worth. Averaged over eight sets, against the true probabilities of new samples.
    """
    logits, labels = calibrated(4000, n_classes=N_CLASSES, seed=1000)
    new = records_of(logits, labels)
    truth = np.exp(log_softmax(logits, axis=1).max(axis=1))
    sets = (calibrated(n_samples, n_classes=N_CLASSES, seed=seed) for seed in range(8))
    excess = [excess_of(in_canonical_order(records_of(*one)), new, truth) for one in sets]
    assert np.mean(excess) <= (5 + 13) / (2 * n_samples)


@pytest.mark.parametrize(("bias", "is_noted"), [(0.0, False), (2.5, True)])
def test_a_class_that_is_named_too_often_is_noted(bias, is_noted):
    logits, labels = calibrated(1500, n_classes=N_CLASSES, seed=1)
    logits[:, 3] += bias
    records = in_canonical_order(records_of(logits, labels))
    found = fitted(records).bias
    assert (found is not None) == is_noted
    assert not is_noted or (found.answer == 3 and found.hits.after > found.hits.before)
    assert fitted(replace(records, group=np.arange(1500) // 3)).bias is None


def test_a_chosen_threshold_is_no_bias():
    chosen = records_of(*calibrated(1500, n_classes=2, spread=3.0), threshold=0.95)
    assert fitted(in_canonical_order(chosen), n_classes=2).bias is None


@pytest.mark.parametrize("votes", [False, True])
def test_labels_that_votes_rule_out_may_come_and_tiny_probabilities_are_believed(votes):
    logits, labels = calibrated(200, n_classes=N_CLASSES, seed=5)
    p = softmax(20.0 * logits, axis=1)
    if votes:
        p = np.random.default_rng(5).multinomial(20, softmax(logits, axis=1)) / 20
        labels = p.argmax(axis=1)  # none of them is ruled out
    records = in_canonical_order(records_of(np.log(np.maximum(p, 1e-300)), labels))
    assert (fitted(records).model.floor > 0.0) == votes
