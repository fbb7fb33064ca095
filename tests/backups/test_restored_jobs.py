"""A job that runs as the backup is made is run anew on what is restored, to the same result."""

import msgspec
import pytest
from job_workspaces import calibrate, logits_set, succeed, workspace_on
from msgspec.structs import asdict, replace
from stored_rows import StoredPlace, claimed, queue_of

from service.backups.restore import restore
from service.reports.report import collect_report


def run(place, job):
    """Run all that is queued; return the report of the job."""
    with place.opened() as database, workspace_on(database, place.folder.parent) as workspace:
        row = succeed(workspace, job)
        return collect_report(workspace, row.tenant_id, str(row.id))


@pytest.mark.process
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_job_is_run_on_what_is_restored(database_url, other_dialect, empty_place, tmp_path):
    place = StoredPlace(database_url, tmp_path / "artifacts")
    into = empty_place(other_dialect, migrated=True)
    with place.opened() as database:
        with workspace_on(database, tmp_path) as workspace:
            job = calibrate(workspace, logits_set())
        queue = queue_of(database, "owner")
        running = claimed(queue)
        place.back_up(tmp_path / "backup")
        assert queue.release(running)
    restore(into.url, into.artifacts, tmp_path / "backup")
    reports = [asdict(run(kept, job)) for kept in (place, into)]
    for report in reports:
        report["calibration"] = replace(report["calibration"], finished_at=None)
    assert msgspec.json.encode(reports[0]) == msgspec.json.encode(reports[1])
