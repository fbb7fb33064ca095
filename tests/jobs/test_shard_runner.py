"""Shards run on threads, spread over the devices; a failure stops the others."""

import threading
import uuid
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest
from job_workspaces import shard_task
from object_stores import WrappedStore
from runner_models import linear

from howsure.statistics.records.build import build_records
from howsure.statistics.records.order import tie_keys
from service.errors import ArtifactDamaged
from service.jobs.recording import RecordingContext, ShardTask
from service.jobs.shards import THREADS_PER_DEVICE, ThreadShards
from service.runner.devices import Device
from service.runner.messages.dataset import Batch
from service.runner.messages.limits import DatasetLimits
from service.runner.model_files import OpenModels
from service.storage.artifact_keys import JobFiles
from service.storage.artifact_rows import NewArtifact
from service.storage.artifact_store import ArtifactStore, open_artifact_store
from service.storage.shards import shard_buffers

CPU = "CPUExecutionProvider"
DEVICES = tuple(Device(f"device {i}", CPU, "a test names it") for i in range(2))
ROWS, FEATURES, CLASSES = 40, 6, 4
FILES = JobFiles.of(uuid.uuid4())


class CountingStore(WrappedStore):
    """Counts the shards that are open at a time."""

    def __init__(self, store: ArtifactStore) -> None:
        super().__init__(store)
        self.open: list[str] = []
        self.most = 0

    @contextmanager
    def local_path(self, key, sha256):
        with super().local_path(key, sha256) as path:
            if "/calibration-" not in key:
                yield path
                return
            self.open.append(key)
            self.most = max(self.most, len(self.open))
            try:
                yield path
            finally:
                self.open.remove(key)


class Runners:
    """Takes the inputs for logits, on any device, and keeps who was asked for what."""

    def __init__(self, meet: int = 0) -> None:
        self.asked: list[tuple[Device, int]] = []
        self._meet = threading.Barrier(meet) if meet else None

    def devices(self):
        return DEVICES

    def record(self, _files, _resolved, inputs, labels, *, start, device, **_):
        self.asked.append((device, start))
        if self._meet is not None:
            self._meet.wait(30)
        scores = inputs["inputs"]
        return build_records(scores, labels, tie_keys=tie_keys(scores, 0), top_k=(1,), logits=True)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore(open_artifact_store("memory://"))


def tasks_of(store, n: int, *, kind="logits", bad: int | None = None) -> list[ShardTask]:
    """Store ``n`` shards; the file of a bad one is not what was stored."""
    model = {}
    if kind == "inputs":
        key = f"{FILES.prefix}/model-0"
        put = store.put_bytes(key, linear().SerializeToString())
        file = NewArtifact("model", 0, "model.onnx", key, put.sha256, put.size)
        model = {"model_files": (file,), "resolved": {}}
    tasks = []
    for i in range(n):
        scores = np.random.default_rng(i).normal(size=(ROWS, CLASSES))
        batch = Batch(0, {kind: scores}, np.arange(ROWS) % CLASSES, {})
        content = b"".join(shard_buffers(batch, labelled=True))
        key = FILES.shard("calibration", i * ROWS)
        put = store.put_bytes(key, content)
        if i == bad:
            store.put_bytes(key, content[:-1])
        shard = NewArtifact("calibration", i, "c.npz", key, put.sha256, put.size)
        tasks.append(shard_task(FILES, shard, i * ROWS, ROWS, **model))
    return tasks


def run(store, tasks, runners=None, beat=lambda: None):
    done: list[int] = []
    tools = RecordingContext(store, runners, OpenModels(store), DatasetLimits())
    return ThreadShards(tools).run(tasks, on_poll=beat, on_rows=done.append), done


def test_each_shard_is_recorded_once_on_one_of_the_devices_two_at_a_time(store) -> None:
    """All four meet at the models, which they can only if each device has its share."""
    together = len(DEVICES) * THREADS_PER_DEVICE
    tasks = tasks_of(store, 2 * together, kind="inputs")
    runners = Runners(meet=together)
    results, done = run(store, tasks, runners)
    assert sorted(one.start for one in results) == [task.start for task in tasks]
    assert done == [ROWS] * len(tasks)
    for round_ in (runners.asked[:together], runners.asked[together:]):
        assert Counter(device for device, _ in round_) == dict.fromkeys(DEVICES, THREADS_PER_DEVICE)
    assert sorted(start for _, start in runners.asked) == [task.start for task in tasks]
    assert store.most <= together


@pytest.mark.parametrize("ending", ["a bad shard", "the beat", "the caller"])
def test_a_failure_or_a_caller_that_leaves_ends_the_other_shards(store, ending) -> None:
    beats = []

    def beat() -> None:
        beats.append(1)
        if ending == "the beat" and len(beats) > 2:
            raise InterruptedError

    tasks = tasks_of(store, 60, bad=2 if ending == "a bad shard" else None)
    results, done = run(store, tasks, beat=beat)
    if ending == "the caller":
        next(results)
        results.close()
    else:
        with pytest.raises(InterruptedError if ending == "the beat" else ArtifactDamaged):
            list(results)
    assert len(done) < len(tasks) - 1
    assert store.open == []
