"""Findings about supplied scores: reversed, or no better than chance."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sample_strategies import calibrated, evidence_of
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

from howsure.statistics.findings import run_checks
from howsure.statistics.findings.evidence import RecordedSet
from howsure.statistics.findings.scores import score_near_chance, score_reversed
from howsure.statistics.measures import SCORE, column
from howsure.statistics.records.pairs import build_pair_records

REVERSED, CHANCE = "score-reversed", "score-near-chance"


def pairs(n_samples, *, seed=0, sharpness=1.0, mean=1.0):
    """Return calibrated scores, and whether each answer is right."""
    rng = np.random.default_rng(seed)
    scores = expit(rng.normal(mean, sharpness, n_samples))
    return scores, rng.random(n_samples) < scores


@cache
def records_of_size(n_samples):
    """Records of pairs, of which the simulations replace all that the checks read."""
    zeros = np.zeros(n_samples)
    rows = np.stack([np.arange(n_samples), zeros], axis=1)
    return build_pair_records(rows, zeros > 0, zeros.astype(np.float32), seed=0)


def evidence_of_pairs(scores, correct, **design):
    values, ranks = (-scores).astype(np.float32), (~correct).astype(np.int32)
    parts = {"uncertainty": {column(SCORE, 1): values}, "label_rank": ranks} | design
    records = replace(records_of_size(len(scores)), **parts)
    counts = np.array([correct.sum(), (~correct).sum()])
    about = {"source": "pairs", "probabilities": False, "bins": "auto"}
    return RecordedSet(records=records, class_counts=counts, **about)


def codes(scores, correct, **design):
    """Return the codes of the two checks."""
    evidence = evidence_of_pairs(scores, correct, **design)
    found = score_reversed(evidence), score_near_chance(evidence)
    return [finding.code for finding in found if finding is not None]


def of_all_checks(evidence):
    return [finding for finding in run_checks(evidence) if finding.code in (REVERSED, CHANCE)]


@pytest.mark.parametrize("n_samples", [100, 1500])
def test_a_score_or_a_column_turned_round_is_found(n_samples):
    scores, correct = pairs(n_samples, sharpness=2.0)
    for sent in ((-scores, correct), (scores, ~correct)):
        (found,) = of_all_checks(evidence_of_pairs(*sent))
        assert (found.code, found.level) == (REVERSED, "warning")
        assert found.figures["auroc"] == pytest.approx(roc_auc_score(sent[1], sent[0]))
        assert found.figures["right"] + found.figures["wrong"] == n_samples
    assert not codes(-scores, ~correct)


@pytest.mark.parametrize("n_samples", [1500, 20_000])
def test_scores_of_other_rows_are_found(n_samples):
    for seed in range(10):
        scores, correct = pairs(n_samples, seed=seed, mean=0.5)
        assert codes(np.roll(scores, 1), correct) == [CHANCE]


def test_few_wrong_answers_prove_nothing():
    scores, correct = pairs(1500, mean=4.0, seed=2)
    assert 5 < (~correct).sum() < 100
    assert not codes(np.roll(scores, 1), correct)
    for n_samples in (1, 2, 10):
        scores, correct = pairs(n_samples, mean=0.0)
        assert not codes(scores, ~correct)


@pytest.mark.parametrize("n_samples", [20, 100, 600, 3000])
@pytest.mark.parametrize(("mean", "decimals"), [(0.0, 1), (1.5, 0), (4.0, 6)])
def test_no_alarm_on_calibrated_scores(n_samples, mean, decimals):
    """Coarse scores have many ties. In 200 sets, one alarm is expected one time in five at most."""
    alarms = 0
    for seed in range(200):
        scores, correct = pairs(n_samples, seed=seed, mean=mean)
        alarms += bool(codes(logit(scores).round(decimals), correct))
    assert alarms <= 1


def test_few_alarms_on_scores_that_are_just_useful():
    """AUROC of 0.6: the weakest score for which alarms are bounded."""
    rng, alarms = np.random.default_rng(4), 0
    for n_samples in np.repeat([400, 1000, 4000], 300):
        correct = rng.random(n_samples) < 0.5
        alarms += bool(codes(rng.normal(size=n_samples) + 0.36 * correct, correct))
    assert alarms <= 4


def test_useless_scores_are_not_called_reversed():
    alarms = 0
    for seed in range(400):
        scores, correct = pairs(300, seed=seed)
        alarms += REVERSED in codes(np.roll(scores, 1), correct)
    assert alarms <= 1


def test_rows_of_one_group_count_as_one():
    """Twelve groups of equal rows: what they say is as uncertain as twelve rows."""
    scores, correct = np.linspace(0, 1, 12), np.arange(12) % 3 == 0
    group = np.repeat(np.arange(12), 200)
    sent = scores[group] + 1e-6 * np.random.default_rng(0).normal(size=2400), correct[group]
    assert codes(*sent)
    assert not codes(*sent, group=group)


@pytest.mark.parametrize(("serves", "level"), [(True, "warning"), (False, "notice")])
def test_a_supplied_measure_that_does_not_serve_is_worth_a_notice(serves, level):
    logits, labels = calibrated(3000, n_classes=10, seed=1, spread=1.0)
    evidence = evidence_of(logits, labels, supplied={"supplied:doubt": serves})
    confidence = evidence.confidence.astype(np.float32)
    expected = ((confidence, REVERSED), (np.roll(confidence, 1), CHANCE), (-confidence, None))
    for doubt, code in expected:
        records = evidence.records.with_supplied({"doubt": doubt})
        found = of_all_checks(replace(evidence, records=records))
        assert [(one.code, one.level) for one in found] == ([(code, level)] if code else [])
