"""Logging, workspace and workers of a process, whether it serves requests, runs jobs or both."""

import logging
import os
import socket
import uuid

import structlog

import models
from service.calibrations.run import run_calibration
from service.child.requests.limits import BodyLimits
from service.evaluations.run import run_evaluation
from service.jobs.cluster_worker import open_recording_context
from service.jobs.recording import RecordingContext
from service.jobs.shards import DaskShards, ShardRunner, ThreadShards
from service.jobs.worker import JobKind, Workers
from service.metrics.metrics import Metrics
from service.runner.process import RunnerProcess
from service.runner.spawner import StartChild
from service.settings import Settings
from service.shard_worker import record_shard_here
from service.storage.database import bypasses_row_security, open_database
from service.storage.file_locks import OwnerLock, SpoolFolder
from service.storage.schema import upgrade
from service.workspace import Limits, Workspace

OURS = "service"
HANDLER = "howsure"
STDERR = 2
# It warns about every malformed upload, which the response reports anyway.
QUIET = {"python_multipart": logging.ERROR}

log = structlog.get_logger(__name__)


JOB_KINDS = (
    JobKind("calibration", models.Calibration, run_calibration),
    JobKind("evaluation", models.Evaluation, run_evaluation),
)


def configure_logging(log_format: str, *, level: int = logging.INFO) -> None:
    """Write log lines to standard error: ours from this level on, libraries' from warnings on.

    Structlog, `logging` and `warnings` share one format. If ``log_format`` is ``json``, each line
    is a JSON object.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    # The descriptor, because other code may replace or close `sys.stderr`.
    handler = logging.StreamHandler(os.fdopen(STDERR, "w", closefd=False))
    handler.name = HANDLER
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.PositionalArgumentsFormatter()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(log_format),
            ],
        )
    )
    root = logging.getLogger()
    for known in [found for found in root.handlers if found.name == HANDLER]:
        root.removeHandler(known)
    root.addHandler(handler)
    logging.getLogger(OURS).setLevel(level)
    for name, least in QUIET.items():
        logging.getLogger(name).setLevel(least)
    logging.captureWarnings(capture=True)


def _renderers(log_format: str) -> list[structlog.typing.Processor]:
    if log_format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    # The default formatter shows values of variables, which may be secret.
    formatter = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=os.isatty(STDERR), exception_formatter=formatter)]


def start(
    settings: Settings, metrics: Metrics, *, start_child: StartChild = RunnerProcess.start
) -> tuple[Workspace, Workers]:
    """Open all resources of the settings, and start the worker threads."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    url = settings.resolved_database_url()
    upgrade(url)
    database = open_database(url)
    if bypasses_row_security(database):
        log.warning(
            "row_level_security_is_off",
            fix="use a role that is no superuser and has no BYPASSRLS: docs/storage.md",
        )
    owner_lock = OwnerLock.beside(database)
    spool = SpoolFolder.within(settings.data_dir / "spool")
    tools = open_recording_context(settings, metrics, copies=spool.path, start_child=start_child)
    workspace = Workspace(
        database=database,
        artifacts=tools.artifacts,
        runners=tools.runners,
        spool=spool,
        shards=_shards(settings, tools),
        keep_inputs=settings.keep_inputs,
        lease_seconds=settings.lease_seconds,
        limits=Limits(
            datasets=tools.dataset_limits,
            bodies=BodyLimits(
                max_bytes=settings.max_predict_bytes, max_rows=settings.max_predict_rows
            ),
            max_row_passes=settings.max_row_passes,
            job_seconds=settings.job_seconds,
        ),
        metrics=metrics,
    )
    workers = Workers(
        workspace,
        JOB_KINDS,
        count=settings.workers,
        owner=f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}",
        owner_lock=owner_lock,
        orphan_seconds=settings.orphan_seconds,
    )
    workers.start()
    return workspace, workers


def stop(workspace: Workspace, workers: Workers) -> None:
    """Queue unfinished jobs again and close everything."""
    workers.stop()
    # A job that waits for its model ends with the model's process.
    workspace.shards.close()
    workspace.runners.close()
    workers.finish()
    workspace.database.dispose()
    workspace.spool.remove()


def _shards(settings: Settings, tools: RecordingContext) -> ShardRunner:
    """Return what runs the rows of jobs: this process or the Dask scheduler of the settings."""
    if not settings.scheduler:
        return ThreadShards(tools)
    return DaskShards(
        settings.scheduler, record_shard_here, resources=settings.resources_of_a_shard()
    )
