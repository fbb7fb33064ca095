"""What every process of the service has, whether it answers requests, runs jobs or both."""

import os
import socket
import uuid

from service.bodies.limits import BodyLimits
from service.datasets import DatasetLimits
from service.jobs.worker import Workers
from service.metrics import Metrics
from service.operations.workspace import Limits, Workspace
from service.runner import RunnerPool
from service.settings import Settings
from service.storage.artifacts import open_artifact_store
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
    workspace = Workspace(
        database=database,
        artifacts=open_artifact_store(settings.resolved_artifacts_url()),
        runners=RunnerPool(
            device=settings.device,
            threads=settings.threads or None,
            max_processes=settings.max_processes,
            load_timeout_s=settings.load_timeout_seconds,
            run_timeout_s=settings.run_timeout_seconds,
            max_classes=settings.max_classes,
            answered=metrics.runs.answered,
        ),
        spool=SpoolFolder.within(settings.data_dir / "spool"),
        lease_seconds=settings.lease_seconds,
        limits=Limits(
            datasets=DatasetLimits(
                max_samples=settings.max_samples, max_classes=settings.max_classes
            ),
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
    )
    workers.start()
    return workspace, workers


def stop(workspace: Workspace, workers: Workers) -> None:
    """Hand jobs back and close it all."""
    workers.stop()
    # Jobs still at a model are let go by the end of its process.
    workspace.runners.close()
    workers.finish()
    workspace.database.dispose()
    workspace.spool.remove()
