"""A further set that ends beside an activation is judged at the activated threshold."""

from functools import partial

import pytest
from databases import BOTH_DIALECTS, before_transaction
from job_workspaces import calibrate, evaluate, finish, logits_set, succeed, workspace_on

from howsure.statistics.operating_point import ThresholdChoice
from service.jobs.acceptance import CallContext
from service.reports.operating_points import save_operating_point
from service.reports.report import collect_report

pytestmark = pytest.mark.process


@pytest.fixture
def workspace(database, tmp_path):
    with workspace_on(database, tmp_path) as workspace:
        yield workspace


@pytest.fixture
def calibration(workspace):
    return succeed(workspace, calibrate(workspace, logits_set()))


def activate(workspace, calibration, points):
    _, point = save_operating_point(
        CallContext(workspace, calibration.tenant_id),
        str(calibration.id),
        name="auto",
        choice=ThresholdChoice(coverage=0.3 + 0.1 * (len(points) % 7)),
        author="somebody",
        reason="to see",
    )
    points.append(point)
    return point


def assert_judged_at(workspace, calibration, point):
    report = collect_report(workspace, calibration.tenant_id, str(calibration.id))
    judged = [further.events["1"].unpromised for further in report.evaluations]
    assert [one and one.threshold for one in judged] == [point.threshold] * len(judged)


@pytest.mark.slow
@BOTH_DIALECTS
def test_a_point_is_activated_before_any_transaction_of_a_job(workspace, calibration):
    number, begun = 0, [0]
    while len(begun) > number:
        number += 1
        further = evaluate(workspace, calibration, logits_set(50), f"set {number}")
        points = []
        act = partial(activate, workspace, calibration, points)
        with before_transaction(number, act, threads=("worker-",)) as begun:
            assert finish(workspace, further).status == "succeeded"
        for point in points:
            assert_judged_at(workspace, calibration, point)


def check_activation(workspace, calibration, number):
    """Let a set end before a transaction of an activation; return how many there were."""
    further = evaluate(workspace, calibration, logits_set(50), f"set {number}")
    end = partial(finish, workspace, further)
    with before_transaction(number, end, threads=("MainThread",)) as begun:
        point = activate(workspace, calibration, [])
    finish(workspace, further)
    assert_judged_at(workspace, calibration, point)
    return len(begun)


@BOTH_DIALECTS
def test_a_set_that_ends_before_the_decision_is_counted_after_all(workspace, calibration):
    """The last transaction sees it; two more count it and decide."""
    last = check_activation(workspace, calibration, 0)
    for number in (last - 1, last):
        check_activation(workspace, calibration, number)
