"""The rows of the home page, on each database."""

from stored_rows import (
    claimed,
    finish,
    finished_calibration,
    queue_calibration,
    queue_of,
    tenant_of,
)

import models
from service.storage.overview import name_rows


def rows_of_names(database, search=""):
    tenant_id = tenant_of(database)
    with database.reading(tenant_id) as session:
        return name_rows(session, tenant_id, limit=10, search=search)


def test_a_newer_version_that_failed_is_named_beside_the_one_that_is_meant(database):
    finished_calibration(database)
    finished_calibration(database, status="failed")
    finished_calibration(database, status="failed")
    (row,) = rows_of_names(database)
    assert (row.version, row.status, row.failed_version) == (1, "succeeded", 3)
    finish(database, queue_calibration(database), "succeeded")
    (row,) = rows_of_names(database)
    assert (row.version, row.failed_version, row.n_versions) == (4, None, 4)


def test_numbers_on_the_evaluation_set_outrank_those_of_the_calibration_set(database):
    finished_calibration(database, "plain")
    queue_calibration(database, "judged")
    queue = queue_of(database)
    job = claimed(queue)
    score = {"tenant_id": job.tenant_id, "calibration_id": job.calibration_id, "k": 1}
    score |= {"subject_kind": "measure", "subject": "margin", "name": "ece_15"}
    rows = [
        models.Score(**score, position=0, phase="cross_validation", mean=0.05, folds=10),
        models.Score(**score, position=1, phase="evaluation", value=0.02),
    ]
    numbers = {"accuracy": {"1": 0.9}, "serve": {"1": "margin"}}
    scores = {"evaluation": {"accuracy": {"1": 0.7, "5": 1.0}}}
    queue.publish(job, rows=rows, artifacts=[], model_scores=scores, **numbers)
    judged, plain = rows_of_names(database)
    assert (judged.name, judged.accuracy, judged.served_error) == ("judged", 0.7, 0.02)
    assert (plain.name, plain.accuracy, plain.served_error) == ("plain", 0.9, None)


def test_a_search_ignores_case_and_has_no_wildcards(database):
    for name in ("A_b", "AXb", "other"):
        finished_calibration(database, name)
    assert {row.name for row in rows_of_names(database, "a_B")} == {"A_b"}
    assert {row.name for row in rows_of_names(database, "%")} == set()
    assert len(rows_of_names(database)) == 3
