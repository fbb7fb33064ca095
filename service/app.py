"""The composition root: settings in, a running service out."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from service import routes
from service.access.api_keys import find_pepper
from service.access.authenticator import Authenticator
from service.access.origins import AllowedOrigins
from service.access.rate_limits import TenantLimits
from service.http.connection_context import ConnectionContext
from service.http.connection_limits import ConnectionLimits
from service.http.job_events import JobWatch, look_at
from service.http.request_record import RequestLog
from service.http.upload_quota import UploadQuotas
from service.http.uploads import UploadLimits
from service.http.worker_threads import Lane, Lanes
from service.metrics.metrics import Metrics
from service.predictions.oip_statistics import Statistics
from service.predictions.prediction_app import PredictionApp
from service.predictions.service import PredictionService
from service.reports.charts.drawing import Renderer
from service.runner.predict_requests import BatchLimits
from service.runner.process import RunnerProcess
from service.runner.queue_bounds import QueueBounds
from service.runner.served_models import ServedModels, ServingRoom
from service.runner.spawner import StartChild
from service.settings import Settings
from service.startup import start, stop
from service.storage.database import Database
from service.storage.tenants import default_tenant_id
from service.web import routes as web_routes
from service.web.report import saved_report
from service.workspace import Workspace

UPLOAD_QUEUE = 256
# Each of them holds a body.
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
) -> FastAPI:
    """Build the service; nothing is opened before it starts.

    Parameters
    ----------
    settings : Settings
    on_ready : callable, optional
        Called once the service can answer.
    keyless : bool
        Whether no API key is asked for: whoever reaches it can reach the database.
    start_child : callable
        Starts a process that runs ONNX models, as `RunnerPool` does.
    """
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        workspace, workers = await run_in_threadpool(
            start, settings, metrics, start_child=start_child
        )
        app.state.workspace = workspace
        authenticator = await run_in_threadpool(
            _doorkeeper, settings, workspace.database, keyless=keyless
        )
        authenticator.start()
        app.state.authenticator = authenticator
        predicting = _predicting(settings, app, workspace, metrics)
        hot.open(predicting, authenticator)
        watch = app.state.job_watch = JobWatch(
            partial(look_at, workspace),
            places=settings.max_event_streams,
            stopping=app.state.stopping,
        )
        if on_ready is not None:
            on_ready()
        try:
            yield
        finally:
            await watch.close()
            await predicting.close()
            await authenticator.close()
            await run_in_threadpool(app.state.charts.close)
            await run_in_threadpool(stop, workspace, workers)

    app = FastAPI(
        title="Howsure",
        version=version("howsure"),
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # ours needs no network, FastAPI's two do
        redoc_url=None,
    )
    app.state.upload_limits = UploadLimits(
        max_model_bytes=settings.max_model_bytes,
        max_model_data_bytes=settings.max_model_data_bytes,
        max_dataset_bytes=settings.max_dataset_bytes,
    )
    app.state.upload_rooms = UploadQuotas()
    app.state.max_wait_seconds = settings.max_wait_seconds
    app.state.metrics = metrics
    app.state.request_log = RequestLog(settings.log_requests)
    is_local = settings.is_loopback() and not keyless
    app.state.allowed_origins = AllowedOrigins(
        settings.host_names(), local=settings.host if is_local else ""
    )
    app.state.lanes = _lanes(settings, metrics)
    app.state.charts = Renderer()
    app.state.saved_report = partial(saved_report, app.state.charts)
    app.state.oip_statistics = Statistics()
    # Set by the server when it begins to shut down.
    app.state.stopping = asyncio.Event()
    hot = app.state.predictions = PredictionApp(
        metrics.requests,
        request_log=app.state.request_log,
        allowed_origins=app.state.allowed_origins,
        max_body_bytes=settings.max_predict_bytes,
        timeout_seconds=settings.predict_timeout_seconds,
    )
    app.state.front = ConnectionContext(
        predictions=hot,
        stopping=app.state.stopping,
        request_log=app.state.request_log,
        # One body of any size that is allowed is received, whatever may wait.
        limits=ConnectionLimits(
            max_receiving_bytes=max(settings.predict_queue_bytes, settings.max_predict_bytes),
            keep_alive_seconds=settings.keep_alive_seconds,
            header_seconds=settings.receive_seconds,
            window_seconds=settings.receive_seconds,
            hot_body_seconds=settings.predict_timeout_seconds,
            max_connections=settings.max_connections,
        ),
    )
    web_routes.add_routes(app)
    # Around what answers unexpected failures; the envelope of each answer comes around it.
    web_routes.add_refusals(app)
    routes.install(app)
    return app


def _predicting(
    settings: Settings, app: FastAPI, workspace: Workspace, metrics: Metrics
) -> PredictionService:
    """Return what answers predictions, on the running event loop."""
    lanes: Lanes = app.state.lanes
    models = workspace.runners.serve(
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
            waited=metrics.lanes.waited("predict"),
        ),
    )
    app.state.models = models
    metrics.runs.watch(lambda: workspace.runners.count_loaded() + models.count_loaded())
    metrics.lanes.watch("predict", _Predictions(lanes.sets, models))
    return PredictionService(
        workspace,
        models,
        statistics=app.state.oip_statistics,
        in_thread=lanes.sets.run,
    )


def _lanes(settings: Settings, metrics: Metrics) -> Lanes:
    lanes = Lanes(
        sets=Lane("sets to predict", threads=settings.upload_threads, queue=SETS_QUEUE),
        upload=Lane(
            "uploads",
            threads=settings.upload_threads,
            queue=UPLOAD_QUEUE,
            waited=metrics.lanes.waited("upload"),
        ),
    )
    metrics.lanes.watch("upload", lanes.upload)
    return lanes


@dataclass(frozen=True)
class _Predictions:
    """Requests for predictions: sets that are read, and what waits for a model or is run."""

    sets: Lane
    models: ServedModels

    @property
    def pending(self) -> int:
        return self.sets.pending + self.models.pending()

    @property
    def running(self) -> int:
        return self.sets.running + self.models.running()


def _doorkeeper(settings: Settings, database: Database, *, keyless: bool) -> Authenticator:
    with database.reading() as session:
        tenant_id = default_tenant_id(session)
    found = Authenticator(
        database,
        tenant_id=tenant_id,
        pepper=partial(find_pepper, settings.key_pepper, settings.data_dir),
        may_be_open=settings.allow_anonymous or settings.is_loopback(),
        keyless=keyless,
        limits=None if keyless else tenant_limits(settings),
        max_bad_keys=0 if keyless else settings.max_bad_keys_per_minute,
    )
    found.look()
    return found


def tenant_limits(settings: Settings) -> TenantLimits:
    """Return what a tenant with keys may use that has no limits of its own."""
    return TenantLimits(
        requests_per_second=settings.max_tenant_requests_per_second,
        rows_per_minute=settings.max_tenant_rows_per_minute,
        stored_bytes=settings.max_tenant_stored_bytes,
        jobs=settings.max_tenant_jobs,
    )
