"""A job that runs as the backup is made is run anew on what is restored, to the same result."""

import pytest
from job_workspaces import calibrate, ended, logits_set, wait_for, working, workspace_on
from storage_rows import claimed, queue_of
from stored_calibrations import Kept

from service.backups.back_up import back_up
from service.backups.restore import restore
from service.reports.report import collect_report


def run(place, job):
    """Run all that is queued; return the report of the job."""
    database = place.open()
    with workspace_on(database, place.folder.parent) as workspace:
        with working(workspace):
            row = wait_for(workspace, job, ended)
        assert row.status == "succeeded", row.error
        report = collect_report(workspace, row.tenant_id, str(row.id))
    database.dispose()
    return report


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_job_is_run_on_what_is_restored(database_url, other_dialect, empty_place, tmp_path):
    place = Kept(database_url, tmp_path / "artifacts")
    into = empty_place(other_dialect, migrated=True)
    database = place.open()
    with workspace_on(database, tmp_path) as workspace:
        job = calibrate(workspace, logits_set())
    queue = queue_of(database, "owner")
    running = claimed(queue)
    back_up(database, place.artifacts, tmp_path / "backup")
    assert queue.release(running)
    database.dispose()
    restore(into.url, into.artifacts, tmp_path / "backup")
    reports = [run(kept, job) for kept in (place, into)]
    for report in reports:
        del report["calibration"]["finished_at"]
    assert reports[0] == reports[1]
