"""What every process of the service has, whether it answers requests, runs jobs or both."""

import os
import socket
import uuid

from service.bodies.limits import BodyLimits
from service.jobs.worker import Workers
from service.metrics import Metrics
from service.operations.dask_shards import DaskShards
from service.operations.record_shard import ShardTools
from service.operations.shard_runner import ShardRunner, ThreadShards
from service.operations.workspace import Limits, Workspace
from service.settings import Settings
from service.shard_tools import open_shard_tools
from service.shard_worker import record_shard_here
from service.storage.database import open_database
from service.storage.owner_lock import OwnerLock
from service.storage.schema import upgrade
from service.storage.spool_folder import SpoolFolder


def start(settings: Settings, metrics: Metrics) -> tuple[Workspace, Workers]:
    """Open all that the settings name, and start the worker threads."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    url = settings.resolved_database_url()
    upgrade(url)
    database = open_database(url)
    owner_lock = OwnerLock.beside(database)
    spool = SpoolFolder.within(settings.data_dir / "spool")
    tools = open_shard_tools(settings, metrics, copies=spool.path)
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
        ),
        metrics=metrics,
    )
    workers = Workers(
        workspace,
        count=settings.workers,
        owner=f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}",
        owner_lock=owner_lock,
        orphan_seconds=settings.orphan_seconds,
    )
    workers.start()
    return workspace, workers


def stop(workspace: Workspace, workers: Workers) -> None:
    """Hand jobs back and close it all."""
    workers.stop()
    # Jobs still at a model are let go by the end of its process.
    workspace.shards.close()
    workspace.runners.close()
    workers.finish()
    workspace.database.dispose()
    workspace.spool.remove()


def _shards(settings: Settings, tools: ShardTools) -> ShardRunner:
    """Return where the rows of jobs are run: here, or by the scheduler that was named."""
    if not settings.scheduler:
        return ThreadShards(tools)
    return DaskShards(
        settings.scheduler, record_shard_here, resources=settings.resources_of_a_shard()
    )
