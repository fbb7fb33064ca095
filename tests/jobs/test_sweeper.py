"""The sweeper removes orphans at the start and periodically."""

import dataclasses
import os
import threading
import time
import uuid

from job_workspaces import working, workspace_on
from object_stores import WrappedStore
from runner_children import wait_until

from service.errors import Overloaded
from service.jobs.cleanup import sweep_until


class AwayStore(WrappedStore):
    """A store that is away for the first two listings."""

    n_away = 2

    def files(self, *args):
        if self.n_away:
            self.n_away -= 1
            raise Overloaded("The artifact store does not answer.")
        return super().files(*args)


def let_lie(folder):
    """Let a file lie there that was written two hours ago and that nothing refers to."""
    path = folder / "artifacts" / "calibrations" / str(uuid.uuid4()) / "model-0"
    path.parent.mkdir(parents=True)
    path.touch()
    os.utime(path, (time.time() - 7200,) * 2)
    return path


def counted(workspace):
    return {
        sample.name: sample.value
        for metric in workspace.metrics._registry.collect()
        for sample in metric.samples
        if sample.labels in ({}, {"outcome": "failed"})
    }


def test_whoever_runs_jobs_sweeps_when_it_starts(database, tmp_path) -> None:
    orphan = let_lie(tmp_path)
    with workspace_on(database, tmp_path) as workspace, working(workspace):
        assert wait_until(lambda: counted(workspace)["howsure_orphans_removed_total"] == 1)
    assert not orphan.parent.exists()
    assert counted(workspace)["howsure_swept_files_total"] == 1


def test_it_sweeps_again_and_again_and_after_the_store_was_away(database, tmp_path) -> None:
    stopping = threading.Event()
    with workspace_on(database, tmp_path) as made:
        workspace = dataclasses.replace(made, artifacts=AwayStore(made.artifacts))
        options = {"shortest_period": 0.01, "orphan_seconds": 0.01}
        sweeper = threading.Thread(target=sweep_until, args=(stopping, workspace), kwargs=options)
        sweeper.start()
        for _ in range(3):
            orphan = let_lie(tmp_path)
            assert wait_until(lambda orphan=orphan: not orphan.exists())
        stopping.set()
        sweeper.join(60)
    assert counted(workspace)["howsure_sweeps_total"] == 2
