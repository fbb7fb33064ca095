"""Calibrations and evaluations take turns on one worker."""

from job_workspaces import calibrate, ended, evaluate, logits_set, wait_for, working, workspace_on


def test_an_evaluation_does_not_wait_for_all_calibrations(database, tmp_path) -> None:
    with workspace_on(database, tmp_path) as workspace:
        first = calibrate(workspace, logits_set())
        with working(workspace):
            wait_for(workspace, first, ended)
        calibrations = [calibrate(workspace, logits_set()) for _ in range(3)]
        evaluation = evaluate(workspace, first, logits_set(seed=1))
        with working(workspace):
            last = wait_for(workspace, calibrations[-1], ended)
            assert wait_for(workspace, evaluation, ended).started_at < last.started_at
