"""Scores as rows. Nothing here is about a dialect: one is enough."""

import pytest
from stored_rows import queue_calibration, tenant_of

from howsure.statistics.comparison import PairedDifference
from howsure.statistics.fit.cross_validation import FoldScore
from howsure.statistics.fit.result import BaselineFit
from service.storage.fit_results import score_rows, scores_of
from service.storage.tenants import ALL_TENANTS


@pytest.fixture
def dialect():
    return "sqlite"


def judged(scores=None, evaluation=None, **differences):
    return BaselineFit(
        name="any", log_floor=0.001, scores=scores or {}, evaluation=evaluation, **differences
    )


def keep(database, calibration, k, measures, baselines, oracle=None):
    names = {"tenant_id": calibration.tenant_id, "calibration_id": calibration.id, "k": k}
    rows = score_rows(**names, measures=measures, baselines=baselines, oracle=oracle)
    with database.session(ALL_TENANTS) as session:
        session.add_all(rows)


def read(database, calibration):
    with database.reading(ALL_TENANTS) as session:
        return scores_of(session, tenant_of(database), calibration.id)


def test_scores_come_back_in_the_order_of_the_fit(database):
    calibration = queue_calibration(database)
    nll = FoldScore(0.1234567890123456, 1e-300, 10, 0.12)
    undefined = FoldScore(None, None, 0, None)
    measures = {
        "neg_log_pmax": judged({"nll": nll, "auroc": undefined}, {"nll": 0.5, "auroc": None}),
        "entropy": judged({"nll": nll}),
    }
    baselines = {"raw": judged({"nll": nll}, {"nll": 0.25}), "constant": judged({"nll": nll})}
    keep(database, queue_calibration(database), 1, measures, {})
    keep(database, calibration, 5, measures, {}, baselines["raw"])
    keep(database, calibration, 1, measures, baselines, baselines["raw"])
    found = read(database, calibration)
    assert [row.k for row in found] == [1] * 10 + [5] * 7
    assert [(row.subject_kind, row.subject, row.phase, row.name) for row in found[:10]] == [
        ("measure", "neg_log_pmax", "cross_validation", "nll"),
        ("measure", "neg_log_pmax", "cross_validation", "auroc"),
        ("measure", "neg_log_pmax", "evaluation", "nll"),
        ("measure", "neg_log_pmax", "evaluation", "auroc"),
        ("measure", "entropy", "cross_validation", "nll"),
        ("baseline", "raw", "cross_validation", "nll"),
        ("baseline", "raw", "evaluation", "nll"),
        ("baseline", "constant", "cross_validation", "nll"),
        ("oracle", "any", "cross_validation", "nll"),
        ("oracle", "any", "evaluation", "nll"),
    ]
    first, second, third, fourth = found[:4]
    assert FoldScore(first.mean, first.std, first.folds, first.pooled) == nll
    assert FoldScore(second.mean, second.std, second.folds, second.pooled) == undefined
    assert (third.value, third.mean, third.folds) == (0.5, None, None)
    assert fourth.value is None


SCORES = {name: FoldScore(0.1, 0.01, 10, 0.1) for name in ("nll", "brier", "ece")}
EVALUATION = {"nll": 0.2, "brier": 0.3}


def test_paired_differences_stand_beside_the_scores_they_are_of(database):
    calibration = queue_calibration(database)
    folds = {
        "nll": PairedDifference(-0.125, 0.0625, 10),
        "brier": PairedDifference(1e-300, None, 1),
    }
    samples = {"nll": PairedDifference(0.5, 0.25, 5000)}
    baseline = judged(SCORES, EVALUATION, difference=folds, evaluation_difference=samples)
    keep(database, calibration, 1, {"margin": judged(SCORES)}, {"raw": baseline})
    assert {
        (row.phase, row.name): (row.difference, row.difference_error, row.difference_pairs)
        for row in read(database, calibration)
        if row.difference is not None
    } == {
        ("cross_validation", "nll"): (-0.125, 0.0625, 10),
        ("cross_validation", "brier"): (1e-300, None, 1),
        ("evaluation", "nll"): (0.5, 0.25, 5000),
    }


def test_a_difference_of_no_score_is_not_dropped_in_silence(database):
    calibration = queue_calibration(database)
    for field in ("difference", "evaluation_difference"):
        unheard_of = {field: {"unheard_of": PairedDifference(0.1, None, 1)}}
        baseline = judged(SCORES, EVALUATION, **unheard_of)
        with pytest.raises(KeyError, match="unheard_of"):
            keep(database, calibration, 1, {}, {"raw": baseline})
