"""The task of Dask workers, which read the same settings as the service."""

from functools import cache

from service.jobs.cluster_worker import open_recording_context
from service.jobs.recording import RecordingContext, ShardTask, record_shard
from service.metrics.metrics import Metrics
from service.settings import read_settings
from service.storage.shards import StoredRecords


def record_shard_here(task: ShardTask) -> StoredRecords:
    """Record a shard with the artifact store and the device of this process's settings."""
    return record_shard(_tools(), task, check=_never)


@cache
def _tools() -> RecordingContext:
    return open_recording_context(read_settings(), Metrics())


def _never() -> None:
    """Never stop early: a shard takes only seconds."""
