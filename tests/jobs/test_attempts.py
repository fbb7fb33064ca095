"""An attempt leaves its records to the next one; a finished job leaves nothing else."""

import dataclasses
import threading

import numpy as np
import pytest
from job_workspaces import (
    TRIAL_ROWS,
    calibrate,
    ended,
    evaluate,
    finish,
    inputs_set,
    packed,
    reread,
    swept_keys,
    wait_for,
    working,
    workspace_on,
)
from runner_models import linear, rows, undefined_below_zero, weights
from stored_rows import add_tenant, queue_calibration

from service.calibrations.manage import cancel_calibration
from service.jobs import progress
from service.jobs.acceptance import CallContext
from service.jobs.recording import BATCH_SAMPLES
from service.jobs.shards import THREADS_PER_DEVICE, ThreadShards
from service.storage.artifact_keys import JobFiles, recorded

pytestmark = pytest.mark.process

SHARD = 4096
# Little to fit: the records are what it is about.
CONFIG = '{"bins": 5, "top_k": [1], "measures": ["margin"], "folds": 2}'
LINEAR = linear().SerializeToString()


class Answers:
    """Counts the rows that a model recorded; from some count on it answers when it may."""

    def __init__(self) -> None:
        self.rows, self.stop_at = 0, float("inf")
        self.reached, self.go_on = threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def __call__(self, operation: str, n_rows: int, _seconds: float) -> None:
        if operation != "record":
            return
        with self._lock:
            self.rows += n_rows
            waits = self.rows >= self.stop_at
        if waits:
            self.reached.set()
            assert self.go_on.wait(60)


class WatchedShards(ThreadShards):
    """Says when the one who waits for the shards was told to stop."""

    def __init__(self, workspace) -> None:
        super().__init__(workspace.shards._tools)
        self.told = threading.Event()

    def run(self, tasks, *, on_poll, on_rows):
        def watched() -> None:
            try:
                on_poll()
            except BaseException:
                self.told.set()
                raise

        return super().run(tasks, on_poll=watched, on_rows=on_rows)


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def workspace(database, tmp_path, answers):
    with workspace_on(database, tmp_path, answered=answers) as made:
        yield dataclasses.replace(made, shards=WatchedShards(made))


def keys_of(workspace, job) -> list[str]:
    return swept_keys(workspace, f"calibrations/{job.id}")


def results_of(row) -> tuple:
    """What is published, with the digest of every file that is no model."""
    files = [(f.role, f.position, f.sha256) for f in row.artifacts if f.role != "model"]
    return (sorted(files), row.accuracy, row.serve, row.model_scores, row.verdicts, row.mislabelled)


def test_a_next_attempt_makes_only_what_is_missing_or_damaged(workspace, answers, tmp_path) -> None:
    n_samples = 3 * SHARD + 100
    content = inputs_set(n_samples)
    job = calibrate(workspace, content, onnx_model=LINEAR, config=CONFIG)
    prefix = JobFiles.of(job.id).prefix
    answers.stop_at = 2 * SHARD + SHARD // 2
    with working(workspace) as workers:
        assert answers.reached.wait(60)
        workers.stop(0.1)
        assert workspace.shards.told.wait(60)
        answers.go_on.set()
    row = reread(workspace, job)
    assert (row.status, row.attempt) == ("queued", 0)
    # Of what was answered, each of the two threads may have held the part of a shard.
    left = recorded(workspace.artifacts.keys(prefix))
    assert 1 <= len(left) < 4
    assert {role for role, _ in left} == {"records"}

    damaged, *whole = sorted(left, key=lambda found: found[1])
    key, _ = left[damaged]
    path = tmp_path / "artifacts" / key
    path.write_bytes(path.read_bytes()[:-50])
    lengths = {start: min(SHARD, n_samples - start) for start in range(0, n_samples, SHARD)}
    known = sum(lengths[start] for _, start in whole)
    answers.rows, answers.stop_at = 0, float("inf")
    row = finish(workspace, job)
    assert (row.status, row.error) == ("succeeded", None)
    assert answers.rows == n_samples - known

    undisturbed = calibrate(workspace, content, onnx_model=LINEAR, config=CONFIG)
    other = finish(workspace, undisturbed)
    assert results_of(row) == results_of(other)
    for found in (row, other):
        assert keys_of(workspace, found) == sorted(file.key for file in found.artifacts)


def test_cancelling_stops_within_a_batch_and_leaves_the_model_alone(workspace, answers) -> None:
    job = calibrate(workspace, inputs_set(3 * SHARD), onnx_model=LINEAR)
    answers.stop_at = SHARD + SHARD // 2
    with working(workspace):
        assert answers.reached.wait(60)
        before = answers.rows
        asked = cancel_calibration(CallContext(workspace, job.tenant_id), str(job.id))
        assert (asked.status, asked.cancel_requested) == ("running", True)
        assert workspace.shards.told.wait(60)
        answers.go_on.set()
        row = wait_for(workspace, job, ended)
    assert (row.status, row.error, row.accuracy) == ("cancelled", None, None)
    assert answers.rows - before <= THREADS_PER_DEVICE * BATCH_SAMPLES
    assert_the_model_alone_is_left(workspace, row)


def test_a_job_gives_way_to_another_tenant_between_shards(workspace, answers, monkeypatch) -> None:
    monkeypatch.setattr(progress, "TURN_SECONDS", 0.0)
    job = calibrate(workspace, inputs_set(3 * SHARD), onnx_model=LINEAR, config=CONFIG)
    answers.stop_at = SHARD // 2
    with working(workspace):
        assert answers.reached.wait(60)
        others = add_tenant(workspace.database, "others")
        other = queue_calibration(workspace.database, tenant_id=others)
        answers.stop_at = float("inf")
        answers.go_on.set()
        row = wait_for(workspace, job, ended, seconds=120)
    assert (row.status, row.error, row.attempt) == ("succeeded", None, 1)
    assert reread(workspace, other).finished_at < row.finished_at
    # The other thread had begun a shard.
    assert 3 * SHARD <= answers.rows <= 4 * SHARD


def test_a_job_that_takes_much_longer_than_its_trial_fails(workspace) -> None:
    limits = dataclasses.replace(workspace.limits, job_seconds=0.0)
    limited = dataclasses.replace(workspace, limits=limits)
    row = finish(limited, calibrate(limited, inputs_set(SHARD), onnx_model=LINEAR, config=CONFIG))
    assert row.status == "failed"
    assert "HOWSURE_JOB_SECONDS" in row.error["detail"]
    assert_the_model_alone_is_left(limited, row)


def test_a_row_that_fails_is_named_as_one_of_its_set_and_leaves_no_shard(workspace) -> None:
    bad, onnx_model = SHARD + 300, undefined_below_zero(weights()).SerializeToString()
    inputs = abs(rows(2 * SHARD))
    good = packed(inputs=inputs[:300], labels=np.arange(300) % 10)
    inputs[bad] = -1
    content = packed(inputs=inputs, labels=np.arange(len(inputs)) % 10)
    row = finish(workspace, calibrate(workspace, content, onnx_model=onnx_model))
    assert row.status == "failed"
    assert f"[{bad}]" in row.error["detail"], row.error
    assert_the_model_alone_is_left(workspace, row)

    # A further set that fails leaves what there was.
    calibration = calibrate(workspace, good, onnx_model=onnx_model)
    finish(workspace, calibration)
    before = keys_of(workspace, calibration)
    further = evaluate(workspace, calibration, inputs_set(defined=False))
    row = finish(workspace, further)
    assert row.status == "failed"
    assert f"evaluation[{TRIAL_ROWS}]" in row.error["detail"], row.error
    assert row.artifacts == []
    assert keys_of(workspace, calibration) == before


def assert_the_model_alone_is_left(workspace, row) -> None:
    assert [file.role for file in row.artifacts] == ["model"]
    assert keys_of(workspace, row) == [file.key for file in row.artifacts]
