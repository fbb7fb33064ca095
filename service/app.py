"""The composition root: builds the service from its settings."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from service import routes
from service.access.api_keys import find_pepper
from service.access.authenticator import Authenticator
from service.access.origins import AllowedOrigins
from service.access.rate_limits import TenantLimits
from service.garbage_collection import collect_garbage, postpone_full_collections
from service.http.connection_context import ConnectionContext
from service.http.connection_limits import ConnectionLimits
from service.http.job_watch import JobWatch
from service.http.request_record import RequestLog
from service.http.services import Services
from service.http.uploads import UploadLimits
from service.http.worker_threads import Lane, Lanes
from service.metrics.metrics import Metrics
from service.predictions.prediction_app import PredictionApp
from service.predictions.service import PredictionService
from service.readiness import ReadinessChecks
from service.runner.predict_requests import BatchLimits
from service.runner.process import RunnerProcess
from service.runner.queue_bounds import QueueBounds
from service.runner.served_models import ServedModels, ServingRoom
from service.runner.spawner import StartChild
from service.settings import Settings
from service.shared_amounts import Line, SharedAmount
from service.startup import start, stop
from service.storage.database import Database
from service.storage.overview import look_at
from service.storage.tenants import ALL_TENANTS, default_tenant_id
from service.web.report import saved_report
from service.workspace import Workspace

# Uploads that are checked at the same time, and uploads that may wait.
UPLOAD_THREADS = 4
UPLOAD_QUEUE = 256
# Reports, charts, comparisons, bins documents.
DOCUMENT_THREADS = 4
DOCUMENT_QUEUE = 256
# One tenant uses one of them.
ANSWER_THREADS = 2
# Smaller, because each waiting request holds its body in memory.
SETS_QUEUE = 64
DESCRIPTION = """\
Upload an ONNX classifier and a labelled calibration set; get back, with every prediction, the
calibrated probability that it is right, with an interval.
"""


def create_app(
    settings: Settings,
    *,
    on_ready: Callable[[], None] | None = None,
    keyless: bool = False,
    start_child: StartChild = RunnerProcess.start,
    owns_process: bool = False,
) -> FastAPI:
    """Build the service; it opens nothing before it starts.

    Parameters
    ----------
    settings : Settings
    on_ready : callable, optional
        Called once the service accepts requests.
    keyless : bool
        Whether no API key is needed, because every caller can reach the database anyway.
    start_child : callable
        Starts a process that runs ONNX models, as for `RunnerPool`.
    owns_process : bool
        Whether nothing else runs in this process, so that its garbage collection may be changed.
    """
    metrics, stopping = Metrics(), asyncio.Event()
    request_log = RequestLog(settings.log_requests)
    allowed_origins = AllowedOrigins(settings.host_names(), keyless=keyless)
    predictions = PredictionApp(
        metrics.requests,
        request_log=request_log,
        allowed_origins=allowed_origins,
        max_body_bytes=settings.max_predict_bytes,
        timeout_seconds=settings.predict_timeout_seconds,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        workspace, workers = await run_in_threadpool(
            start, settings, metrics, start_child=start_child
        )
        app.state.workspace = workspace
        app.state.readiness = ReadinessChecks(workspace, stopping)
        authenticator = await run_in_threadpool(
            _authenticator, settings, workspace.database, keyless=keyless
        )
        authenticator.start()
        services = _services(settings, workspace, authenticator, predictions, stopping)
        predicting = _open_predictions(services, workspace)
        app.state.services = services
        collecting: asyncio.Task[None] | None = None
        if owns_process:
            postpone_full_collections()
            collecting = asyncio.create_task(collect_garbage(services.lanes.documents))
        if on_ready is not None:
            on_ready()
        try:
            yield
        finally:
            if collecting is not None:
                collecting.cancel()
            await services.job_watch.close()
            await predicting.close()
            await authenticator.close()
            await run_in_threadpool(stop, workspace, workers)

    app = FastAPI(
        title="Howsure",
        version=version("howsure"),
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url=None,  # ours is made in a thread
        docs_url=None,  # ours needs no network, FastAPI's two do
        redoc_url=None,
    )
    app.state.metrics = metrics
    # The server sets it when it begins to shut down.
    app.state.stopping = stopping
    app.state.front = ConnectionContext(
        predictions=predictions,
        stopping=stopping,
        request_log=request_log,
        limits=_connection_limits(settings),
    )
    routes.install(app, metrics=metrics, request_log=request_log, allowed_origins=allowed_origins)
    return app


def _connection_limits(settings: Settings) -> ConnectionLimits:
    return ConnectionLimits(
        # One body of the maximum size is always accepted, whatever is waiting.
        max_receiving_bytes=max(settings.predict_queue_bytes, settings.max_predict_bytes),
        max_unread_bytes=settings.predict_queue_bytes,
        keep_alive_seconds=settings.keep_alive_seconds,
        header_seconds=settings.receive_seconds,
        window_seconds=settings.receive_seconds,
        hot_body_seconds=settings.predict_timeout_seconds,
        max_connections=settings.max_connections,
    )


def _services(
    settings: Settings,
    workspace: Workspace,
    authenticator: Authenticator,
    predictions: PredictionApp,
    stopping: asyncio.Event,
) -> Services:
    """Return the shared objects of the service, on the running event loop."""
    return Services(
        authenticator=authenticator,
        predictions=predictions,
        models=_models(settings, workspace),
        lanes=_lanes(workspace.metrics),
        job_watch=JobWatch(
            partial(look_at, workspace.database),
            waits=SharedAmount(Line.WAITS, max(settings.max_connections // 2, 1)),
            stopping=stopping,
            max_wait_seconds=settings.max_wait_seconds,
        ),
        saved_report=saved_report,
        upload_limits=UploadLimits(
            max_model_bytes=settings.max_model_bytes,
            max_model_data_bytes=settings.max_model_data_bytes,
            max_dataset_bytes=settings.max_dataset_bytes,
        ),
        uploading=SharedAmount(Line.UPLOADING_BYTES),
        dry_runs=SharedAmount(Line.DRY_RUNS),
    )


def _models(settings: Settings, workspace: Workspace) -> ServedModels:
    return workspace.runners.serve(
        limits=BatchLimits(
            max_rows=settings.max_predict_rows,
            max_bytes=settings.max_predict_bytes,
            run_rows=settings.max_batch_rows,
            run_seconds=settings.run_timeout_seconds,
        ),
        room=ServingRoom(
            max_models=settings.max_processes, max_memory_bytes=settings.max_model_memory
        ),
        bounds=QueueBounds(
            max_rows=settings.predict_queue_rows,
            max_bytes=settings.predict_queue_bytes,
            waited=workspace.metrics.lanes.waited("predict"),
        ),
    )


def _lanes(metrics: Metrics) -> Lanes:
    return Lanes(
        sets=Lane(Line.SETS, threads=UPLOAD_THREADS, queue=SETS_QUEUE),
        upload=Lane(
            Line.UPLOADS,
            threads=UPLOAD_THREADS,
            queue=UPLOAD_QUEUE,
            waited=metrics.lanes.waited("upload"),
        ),
        answers=Lane(Line.ANSWERS, threads=ANSWER_THREADS, queue=math.inf),
        documents=Lane(Line.DOCUMENTS, threads=DOCUMENT_THREADS, queue=DOCUMENT_QUEUE),
    )


def _open_predictions(services: Services, workspace: Workspace) -> PredictionService:
    """Begin to answer predictions, and to measure their queues."""
    metrics, models, lanes = workspace.metrics, services.models, services.lanes
    metrics.runs.watch(lambda: workspace.runners.count_loaded() + models.count_loaded())
    metrics.lanes.watch("upload", lanes.upload)
    metrics.lanes.watch("predict", lanes.sets, models)
    predicting = PredictionService(
        workspace, models, in_thread=lanes.sets.run, answers=lanes.answers
    )
    services.predictions.open(predicting, services.authenticator)
    return predicting


def _authenticator(settings: Settings, database: Database, *, keyless: bool) -> Authenticator:
    with database.reading(ALL_TENANTS) as session:
        tenant_id = default_tenant_id(session)
    found = Authenticator(
        database,
        tenant_id=tenant_id,
        pepper=partial(find_pepper, settings.key_pepper, settings.data_dir),
        may_be_open=settings.allow_anonymous or settings.is_loopback(),
        keyless=keyless,
        limits=None if keyless else TenantLimits(**settings.tenant_limits()),
    )
    found.look()
    return found
