from storage_rows import add_tenant, queue_calibration, tenant_of

from service.core.crossval import FoldScore
from service.core.fit_result import BaselineFit
from service.storage.scores import score_rows, scores_of


def judged(scores=None, evaluation=None):
    return BaselineFit("any", 0.001, scores or {}, evaluation)


def keep(database, calibration, **events):
    rows = []
    for k, (measures, baselines) in events.items():
        rows += score_rows(
            tenant_id=calibration.tenant_id,
            calibration_id=calibration.id,
            k=int(k[1:]),
            measures=measures,
            baselines=baselines,
        )
    with database.session() as session:
        session.add_all(rows)


def read(database, calibration, tenant_id=None):
    with database.reading() as session:
        return scores_of(session, tenant_id or tenant_of(database), calibration.id)


def test_scores_come_back_in_the_order_of_the_fit(database):
    calibration = queue_calibration(database)
    nll = FoldScore(0.1234567890123456, 1e-300, 10, 0.12)
    undefined = FoldScore(None, None, 0, None)
    measures = {
        "neg_log_pmax": judged({"nll": nll, "auroc": undefined}, {"nll": 0.5, "auroc": None}),
        "entropy": judged({"nll": nll}),
    }
    baselines = {"raw": judged({"nll": nll}, {"nll": 0.25}), "constant": judged({"nll": nll})}
    keep(database, calibration, k5=(measures, {}), k1=(measures, baselines))
    found = read(database, calibration)
    assert [row.k for row in found] == [1] * 8 + [5] * 5
    assert [(row.subject_kind, row.subject, row.phase, row.name) for row in found[:8]] == [
        ("measure", "neg_log_pmax", "cross_validation", "nll"),
        ("measure", "neg_log_pmax", "cross_validation", "auroc"),
        ("measure", "neg_log_pmax", "evaluation", "nll"),
        ("measure", "neg_log_pmax", "evaluation", "auroc"),
        ("measure", "entropy", "cross_validation", "nll"),
        ("baseline", "raw", "cross_validation", "nll"),
        ("baseline", "raw", "evaluation", "nll"),
        ("baseline", "constant", "cross_validation", "nll"),
    ]
    first, second, third, fourth = found[:4]
    assert FoldScore(first.mean, first.std, first.folds, first.pooled) == nll
    assert FoldScore(second.mean, second.std, second.folds, second.pooled) == undefined
    assert (third.value, third.mean, third.folds) == (0.5, None, None)
    assert fourth.value is None


def test_scores_of_others_are_not_read(database):
    calibration = queue_calibration(database)
    keep(database, calibration, k1=({"margin": judged(evaluation={"nll": 1.0})}, {}))
    assert list(read(database, queue_calibration(database))) == []
    assert list(read(database, calibration, add_tenant(database, "other"))) == []
