"""Workspaces with a database and artifacts, and a prediction service on one."""

import asyncio
import hashlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from forked_children import SERVER
from runner_models import N_FEATURES, rows
from running_service import npz as packed
from stored_rows import tenant_of

import models
from service.calibrations.start import start_calibration
from service.calibrations.upload.upload_form import CalibrationUpload
from service.child.requests.limits import BodyLimits
from service.evaluations.evaluations import get_evaluation, start_evaluation
from service.http.uploads import SpooledFile
from service.http.worker_threads import Lane
from service.jobs.acceptance import CallContext
from service.jobs.recording import RecordingContext, ShardTask
from service.jobs.samples import KeepInputs
from service.jobs.shards import ThreadShards
from service.jobs.worker import Workers
from service.predictions.prediction_request import PredictionOptions, PredictionRequest
from service.predictions.service import PredictionService
from service.runner.messages.limits import DatasetLimits
from service.runner.model_files import OpenModels
from service.runner.pool import RunnerPool
from service.runner.predict_requests import BatchLimits
from service.runner.queue_bounds import QueueBounds
from service.runner.served_models import ServedModels, ServingRoom
from service.shared_amounts import Line
from service.startup import JOB_KINDS
from service.storage.artifact_keys import JobFiles
from service.storage.artifact_rows import NewArtifact
from service.storage.artifact_store import open_artifact_store
from service.storage.calibrations import CalibrationRepository
from service.storage.database import Database
from service.storage.file_locks import SpoolFolder
from service.storage.orphans import remove_orphans
from service.storage.tenants import ALL_TENANTS
from service.workspace import Limits, Workspace

# A configuration that takes little time.
QUICK = '{"bins": 5, "top_k": [1], "measures": ["neg_log_pmax"], "folds": 2}'
TOO_LARGE = 1e6
TRIAL_ROWS = 256


@contextmanager
def workspace_on(
    database: Database,
    folder: Path,
    *,
    kind: type[Workspace] = Workspace,
    lease_seconds: float = 30.0,
    keep_inputs: KeepInputs = "some",
    **options: Any,
) -> Iterator[Workspace]:
    """Yield a workspace; options are those of its pool."""
    patient = {"max_processes": 2, "run_timeout_s": 60.0, "queue_timeout_s": 60.0}
    options = {
        "device": "cpu",
        "threads": 1,
        "start_child": SERVER.start_child,
        **patient,
        **options,
    }
    runners = RunnerPool(**options)
    artifacts = open_artifact_store(str(folder / "artifacts"))
    limits = DatasetLimits()
    shards = ThreadShards(RecordingContext(artifacts, runners, OpenModels(artifacts), limits))
    with runners:
        yield kind(
            database=database,
            artifacts=artifacts,
            runners=runners,
            spool=SpoolFolder.within(folder / "spool"),
            shards=shards,
            keep_inputs=keep_inputs,
            lease_seconds=lease_seconds,
            limits=Limits(limits, BodyLimits(max_bytes=2**20, max_rows=1000)),
        )


@contextmanager
def working(workspace: Workspace, *, count: int = 1) -> Iterator[Workers]:
    """Run workers until the block ends; on SQLite nobody else is there to own the file."""
    workers = Workers(workspace, JOB_KINDS, count=count, owner=uuid.uuid4().hex, owner_lock=None)
    workers.start()
    try:
        yield workers
    finally:
        workers.stop(0.1)
        workers.finish(10.0)


def uploaded(folder: Path, content: bytes, label: str) -> SpooledFile:
    path = folder / uuid.uuid4().hex
    path.write_bytes(content)
    return SpooledFile(path, label, hashlib.sha256(content).hexdigest(), len(content))


def logits_set(n_samples: int = 200, n_classes: int = 3, *, seed: int = 0) -> bytes:
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(n_samples, n_classes))
    return packed(logits=logits, labels=generator.integers(0, n_classes, n_samples))


def inputs_set(
    n_samples: int = 600, *, ends: bool = True, defined: bool = True, seed: int = 1
) -> bytes:
    """Inputs that pass the trial.

    The row after it runs the model of `endless_above` for ever if not ``ends``; for that of
    `undefined_below_zero` it is the first that breaks a rule if not ``defined``.
    """
    inputs = rows(n_samples, seed=seed)
    if not defined:
        inputs[:TRIAL_ROWS] = abs(inputs[:TRIAL_ROWS])
        inputs[TRIAL_ROWS] = -1
    assert inputs.shape == (n_samples, N_FEATURES)
    if not ends:
        inputs[TRIAL_ROWS] = TOO_LARGE
    return packed(inputs=inputs, labels=np.arange(n_samples) % 10)


def shard_task(
    files: JobFiles, shard: NewArtifact, start: int, n_rows: int, **changes: Any
) -> ShardTask:
    """Return the task of recording a shard of a calibration set, by default one of outputs."""
    defaults = {"location": "calibration", "role": "records", "model_files": (), "resolved": None}
    defaults |= {"top_k": (1,), "seed": 0}
    return ShardTask(files=files, shard=shard, start=start, n_rows=n_rows, **defaults | changes)


def calibrate(
    workspace: Workspace,
    content: bytes,
    *,
    onnx_model: bytes | None = None,
    evaluation: bytes | None = None,
    config: str = QUICK,
) -> models.Calibration:
    """Queue a calibration and return its row."""
    folder = workspace.spool.path
    onnx_models = [] if onnx_model is None else [uploaded(folder, onnx_model, "model.onnx")]
    sets = {"calibration": content} | ({} if evaluation is None else {"evaluation": evaluation})
    upload = CalibrationUpload(
        {role: (uploaded(folder, data, f"{role}.npz"), None) for role, data in sets.items()},
        config,
        onnx_models,
    )
    tenant_id = tenant_of(workspace.database)
    made = start_calibration(CallContext(workspace, tenant_id), upload)
    return _with_files(workspace, tenant_id, made)


def evaluate(
    workspace: Workspace, calibration: models.Calibration, content: bytes, name: str = "further"
) -> models.Evaluation:
    """Queue an evaluation and return its row."""
    return start_evaluation(
        CallContext(workspace, calibration.tenant_id),
        str(calibration.id),
        name=name,
        uploaded=uploaded(workspace.spool.path, content, "evaluation.npz"),
    )


def _with_files(
    workspace: Workspace, tenant_id: uuid.UUID, calibration_id: uuid.UUID
) -> models.Calibration:
    with workspace.database.reading(ALL_TENANTS) as session:
        return CalibrationRepository(session, tenant_id).get(calibration_id)


Job = models.Calibration | models.Evaluation


def reread(workspace: Workspace, job: Job) -> Job:
    if isinstance(job, models.Evaluation):
        return get_evaluation(
            CallContext(workspace, job.tenant_id), str(job.calibration_id), job.name
        )
    return _with_files(workspace, job.tenant_id, job.id)


def wait_for(
    workspace: Workspace, job: Job, wanted: Callable[[Job], bool], *, seconds: float = 30.0
) -> Job:
    """Return the job's row as soon as it is as wanted."""
    until = time.monotonic() + seconds
    while True:
        row = reread(workspace, job)
        if wanted(row):
            return row
        assert time.monotonic() < until, (row.status, row.progress_stage, row.attempt, row.error)
        time.sleep(0.02)


def ended(job: Job) -> bool:
    return job.status not in models.UNFINISHED


def finish(workspace: Workspace, job: Job) -> Job:
    """Run a queued job to its end, however it ends."""
    with working(workspace):
        return wait_for(workspace, job, ended, seconds=120)


def succeed(workspace: Workspace, job: Job) -> Job:
    """Run a queued job, which must succeed."""
    row = finish(workspace, job)
    assert row.status == "succeeded", row.error
    return row


TIMEOUT = 60.0


class FuturePrediction(PredictionRequest, eq=False, kw_only=True):
    answered: Future

    def done(self, answer):
        self.answered.set_result(json.loads(answer.body))

    def failed(self, error):
        self.answered.set_exception(error)


@dataclass(frozen=True)
class Predictor:
    """Asks like a client whose body names the calibration."""

    loop: asyncio.AbstractEventLoop
    predicting: PredictionService
    models: ServedModels
    tenant_id: uuid.UUID

    def ask(self, reference: str, rows: Any, *, kind: str = "inputs") -> dict:
        """Return the answer; what it failed with is raised."""
        return self.begin(reference, rows, kind=kind).result(60)

    def begin(self, reference: str, rows: Any, *, kind: str = "inputs") -> "Future[dict]":
        """Ask and do not wait."""
        answered: Future[dict] = Future()

        def begin() -> None:
            asked = FuturePrediction(
                asker=self.predicting,
                body=json.dumps({"calibration": reference, kind: rows}).encode(),
                tenant_id=self.tenant_id,
                arrived=self.loop.time(),
                options=PredictionOptions("application/json", None, "json", TIMEOUT),
                timeout=TIMEOUT,
                answered=answered,
            )
            self.predicting.begin(asked)

        self.loop.call_soon_threadsafe(begin)
        return answered

    def settle(self) -> None:
        """Wait until the loop has done all that it was asked to before."""
        done = threading.Event()
        self.loop.call_soon_threadsafe(self.loop.call_soon, done.set)
        done.wait()


@contextmanager
def predictor_of(workspace: Workspace, *, max_models: int = 1) -> Iterator[Predictor]:
    """Answer predictions of a workspace until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def on_loop(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run_coroutine_threadsafe(work(), loop).result(TIMEOUT)

    async def opened() -> Predictor:
        models = workspace.runners.serve(
            limits=BatchLimits(max_rows=1000, max_bytes=2**20, run_rows=128, run_seconds=TIMEOUT),
            room=ServingRoom(max_models=max_models, max_memory_bytes=0),
            bounds=QueueBounds(max_rows=4096, max_bytes=2**20),
        )
        lane = Lane(Line.SETS, threads=2, queue=2)
        predicting = PredictionService(workspace, models, in_thread=lane.run, answers=lane)
        return Predictor(loop, predicting, models, tenant_of(workspace.database))

    try:
        predictor = on_loop(opened)
        try:
            yield predictor
        finally:
            on_loop(predictor.predicting.close)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def swept_keys(workspace: Workspace, prefix: str = "calibrations") -> list[str]:
    """Return the keys that are left after the sweep of an hour later."""
    remove_orphans(workspace.database, workspace.artifacts, older_than=timedelta(hours=-1))
    return workspace.artifacts.keys(prefix)
