"""The composition root of a process that only runs jobs and reports its health and metrics."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from service import health
from service.http import problems, request_record
from service.http.connection_context import ConnectionContext
from service.http.connection_limits import ConnectionLimits
from service.http.request_record import RequestLog
from service.metrics import route
from service.metrics.metrics import Metrics
from service.readiness import ReadinessChecks
from service.settings import Settings
from service.startup import start, stop


def create_worker_app(settings: Settings, *, on_ready: Callable[[], None] | None = None) -> FastAPI:
    """Build a service whose threads run jobs; it opens nothing before it starts.

    Over HTTP it serves only its health and metrics.

    Parameters
    ----------
    settings : Settings
    on_ready : callable, optional
        Called once the workers run.
    """
    counted = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        workspace, workers = await run_in_threadpool(start, settings, counted)
        app.state.workspace = workspace
        app.state.readiness = ReadinessChecks(workspace, app.state.stopping)
        counted.runs.watch(workspace.runners.count_loaded)
        if on_ready is not None:
            on_ready()
        try:
            yield
        finally:
            await run_in_threadpool(stop, workspace, workers)

    app = FastAPI(
        title="Howsure, a worker",
        version=version("howsure"),
        lifespan=lifespan,
        openapi_url=None,
    )
    app.state.stopping = asyncio.Event()
    app.state.front = ConnectionContext(
        stopping=app.state.stopping,
        limits=ConnectionLimits(keep_alive_seconds=settings.keep_alive_seconds),
    )
    problems.install(app)
    request_record.install(app, metrics=counted, request_log=RequestLog(settings.log_requests))
    for resource in (health, route):
        app.include_router(resource.router)
    return app
