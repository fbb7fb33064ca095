"""The fit of the learned measure: cross-fitted, silent on noise, harmless, and worth its cost."""

import numpy as np
import pytest
from sample_strategies import calibrated, records_of
from scipy.special import expit, log_softmax, xlogy
from sklearn.metrics import roc_auc_score

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.learned.fit import fit_learned
from howsure.statistics.learned.quadratic_map import falling_map, fit_map, standard_scale
from howsure.statistics.learned.recorded import learned_uncertainty
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
    return fit_learned(EventSamples(records, 1), folds, n_classes=n_classes)


@pytest.mark.parametrize("pair", [0, 4])
def test_it_is_cross_fitted(pair):
    """No uncertainty depends on labels of its own folds, not even by the temperature and scales."""
    records = uneven(400)
    folds = stratified_folds(records.hits(1), records.tie_key, n_folds=10)
    held = folds // 2 == pair
    before, after = uneven(400), uneven(400)
    before.label_rank[held], before.label_logit[held] = 0, 0.0
    after.label_rank[held], after.label_logit[held] = 1, -20.0
    before, after = (fitted(one, folds=folds) for one in (before, after))
    assert before.model.temperature != after.model.temperature
    np.testing.assert_array_equal(before.uncertainty[held], after.uncertainty[held])
    assert (before.uncertainty != after.uncertainty)[~held].any()


@pytest.mark.parametrize("temperature", [10, 14, 18])
def test_the_map_has_converged(temperature):
    """From the start that is given and from another: the posterior has one maximum."""
    for seed in range(3):
        samples = EventSamples(uneven(240, seed=seed), 1)
        scale, problem, weights = falling_map(samples, standard_scale(samples, temperature))
        start = np.random.default_rng(seed).normal(size=len(weights))
        again, _ = fit_map(problem, problem.offset, scale, start)
        np.testing.assert_allclose(weights, again, atol=1e-4)


def test_classes_that_are_worse_than_they_look_are_found():
    """Classes of the model that no sample has get no effect."""
    records = uneven(3000)
    found, more = fitted(records), fitted(records, n_classes=N_CLASSES + 4)
    counts = np.bincount(records.top_classes[:, 0], minlength=N_CLASSES + 4)
    assert more.class_counts.tolist() == counts.tolist()
    assert (found.class_effects[:3] < -0.3).all()
    assert (found.class_effects[3:] > 0.3).all()
    assert not more.class_effects[N_CLASSES:].any()
    np.testing.assert_allclose(more.class_effects[:N_CLASSES], found.class_effects, rtol=1e-9)
    np.testing.assert_allclose(more.uncertainty, found.uncertainty, rtol=1e-6)
    new = EventSamples(uneven(6000, seed=9), 1)
    learned = learned_uncertainty(found.model, new)
    assert auroc(learned, new.hits) > auroc(new.mass_uncertainty, new.hits) + 0.02


def test_effects_of_chance_are_rare():
    """By Markov's inequality a likelihood ratio of e^2 has a chance of at most e^-2 under noise.

    Each of ten pairs of scales has its own, and they are nearly the same; so about e^-2 of sets.
    """
    drawn = (calibrated(300, n_classes=N_CLASSES, seed=seed) for seed in range(25))
    fits = [fitted(in_canonical_order(records_of(*one))) for one in drawn]
    assert np.mean([fit.class_effects.any() for fit in fits]) <= np.exp(-2.0)
    silent = [fit.model for fit in fits if not fit.class_effects.any()]
    assert not any(part.any() for own in silent for part in (own.offset, own.slope, own.second))


def excess_of(records, new, truth):
    """Return the excess NLL over the truth of new samples, of a curve on the fitted measure."""
    found, options = fitted(records), {"lookup": "smooth", "measure": "learned"}
    table = fit_bin_table(found.uncertainty, records.hits(1), n_bins=5, **options)
    q = table.look_up(learned_uncertainty(found.model, new)).probability
    return np.mean(xlogy(truth, truth / q) + xlogy(1 - truth, (1 - truth) / (1 - q)))


@pytest.mark.parametrize("n_samples", [200, 2000])
def test_does_no_harm_to_a_calibrated_model(n_samples):
    """Excess NLL over the truth: at most the d / 2n of a fit of d coefficients without penalty.

    There are five for the temperature's map, ten splines and a quadratic; other stages must first
    prove their worth. Averaged over eight sets, against the true probabilities of new samples.
    """
    logits, labels = calibrated(4000, n_classes=N_CLASSES, seed=1000)
    new = EventSamples(records_of(logits, labels), 1)
    truth = np.exp(log_softmax(logits, axis=1).max(axis=1))
    sets = (calibrated(n_samples, n_classes=N_CLASSES, seed=seed) for seed in range(8))
    excess = [excess_of(in_canonical_order(records_of(*one)), new, truth) for one in sets]
    assert np.mean(excess) <= (5 + 13) / (2 * n_samples)


def auroc(values, hits):
    return roc_auc_score(~hits, values)


def noisy(n_samples, *, seed):
    """Records of an overconfident model of two classes, one in twenty of whose labels is wrong."""
    logits, labels = calibrated(n_samples, n_classes=2, seed=seed)
    wrong = np.random.default_rng(seed).random(n_samples) < 0.05
    return in_canonical_order(records_of(4.0 * logits, np.where(wrong, 1 - labels, labels)))


@pytest.mark.parametrize("n_samples", [600, 2500])
def test_more_mass_on_other_classes_is_never_more_certain(n_samples):
    """A quadratic through log-odds that level off would turn; no class tells anything here."""
    new = EventSamples(noisy(6000, seed=9), 1)
    order = np.argsort(new.mass_uncertainty, kind="stable")
    judged = 0
    for seed in range(4):
        found = fitted(noisy(n_samples, seed=seed), n_classes=2)
        if found.class_effects.any() or found.model.second.any():
            continue
        learned = learned_uncertainty(found.model, new)
        assert auroc(learned, new.hits) > auroc(new.mass_uncertainty, new.hits) - 0.001
        rise = np.diff(learned[order])
        assert rise.min() > -0.01 * rise[rise > 0].sum()
        judged += 1
    assert judged >= 3


def test_many_uncertain_answers_do_not_get_one_value():
    """The truth turns where a fifth of the samples are less certain; the map falls all the same."""
    rng = np.random.default_rng(4)
    margin = rng.uniform(0.0, 8.0, 5000)
    right = rng.random(5000) < expit(0.1 + 0.08 * (margin - 1.6) ** 2)
    records = records_of(np.column_stack([np.zeros(5000), margin]), right.astype(np.int64))
    samples = EventSamples(in_canonical_order(records), 1)
    scale, problem, weights = falling_map(samples, standard_scale(samples, 10))
    _, _, end = problem.slopes @ weights - problem.steepness
    assert scale.falls
    assert end == pytest.approx(0.0, abs=0.01)
    assert np.mean(problem.design[:, 1] == problem.design[:, 1].max()) < 0.01


def votes(n_samples, *, seed, n_votes=7):
    """Records of shares of votes: most samples are unanimous, and 3 in 1,000 of those are wrong.

    The label of such an error has probability 0, stored as 1e-300.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, N_CLASSES, n_samples)
    hard = rng.random(n_samples) < 0.25
    said = np.where(rng.random(n_samples) < 0.003, (labels + 1) % N_CLASSES, labels)
    other = hard & (rng.random((n_votes, n_samples)) < 0.4)
    voted = np.where(other, (labels + 2) % N_CLASSES, said)
    shares = np.eye(N_CLASSES)[voted].mean(axis=0)
    return in_canonical_order(records_of(np.log(np.maximum(shares, 1e-300)), labels))


def test_probabilities_of_0_do_not_spoil_the_map():
    """Excess NLL on new samples: at most that of one free rate for each of the four shares.

    In the mean of eight sets of 200, over the true rate of each share.
    """
    new = EventSamples(votes(20_000, seed=100), 1)
    _, group = np.unique(new.mass_uncertainty.round(4), return_inverse=True)
    rate = np.bincount(group, new.hits) / np.bincount(group)
    assert len(rate) == 4
    excess = [excess_of(votes(200, seed=seed), new, rate[group]) for seed in range(8)]
    assert np.mean(excess) <= 4 / (2 * 200)
