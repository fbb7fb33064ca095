"""The sweeper removes orphans at the start and periodically."""

import dataclasses
import os
import threading
import time
import uuid
from contextlib import contextmanager

from job_workspaces import working, workspace_on
from object_stores import WrappedStore

from service.errors import Overloaded
from service.jobs.cleanup import sweep_until

WAIT_SECONDS = 60


class WatchedStore(WrappedStore):
    """A store that tells when something is deleted; it is away for the first listings."""

    def __init__(self, store, *, away=0):
        super().__init__(store)
        self.deleted = threading.Semaphore(0)
        self._away = away

    def files(self, *args):
        if self._away:
            self._away -= 1
            raise Overloaded("The artifact store does not answer.")
        return super().files(*args)

    def delete(self, keys):
        super().delete(keys)
        self.deleted.release()


@contextmanager
def watched(database, folder, **options):
    """Yield a workspace whose store is a `WatchedStore`."""
    with workspace_on(database, folder) as workspace:
        store = WatchedStore(workspace.artifacts, **options)
        yield dataclasses.replace(workspace, artifacts=store)


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
    with watched(database, tmp_path) as workspace, working(workspace):
        assert workspace.artifacts.deleted.acquire(timeout=WAIT_SECONDS)
    assert not orphan.parent.exists()
    assert counted(workspace)["howsure_orphans_removed_total"] == 1
    assert counted(workspace)["howsure_swept_files_total"] == 1


def test_it_sweeps_again_and_again_and_after_the_store_was_away(database, tmp_path) -> None:
    stopping = threading.Event()
    with watched(database, tmp_path, away=2) as workspace:
        options = {"shortest_period": 0.01, "orphan_seconds": 0.01}
        sweeper = threading.Thread(target=sweep_until, args=(stopping, workspace), kwargs=options)
        sweeper.start()
        for _ in range(3):
            orphan = let_lie(tmp_path)
            while orphan.exists():
                assert workspace.artifacts.deleted.acquire(timeout=WAIT_SECONDS)
        stopping.set()
        sweeper.join(WAIT_SECONDS)
    assert counted(workspace)["howsure_sweeps_total"] == 2
