"""What shards are recorded with, as the settings say: the same in the service and on a cluster."""

from pathlib import Path

from service.datasets import DatasetLimits
from service.metrics import Metrics
from service.operations.open_models import OpenModels
from service.operations.record_shard import ShardTools
from service.runner import RunnerPool
from service.runner.sandbox import SandboxRules
from service.settings import Settings
from service.storage.artifacts import open_artifact_store


def open_shard_tools(
    settings: Settings, metrics: Metrics, *, copies: Path | None = None
) -> ShardTools:
    """Open the artifact store, and what runs ONNX models; no process is started yet.

    Parameters
    ----------
    settings : Settings
    metrics : Metrics
        Told of the runs.
    copies : Path, optional
        The folder for copies of remote artifacts; a temporary one if none is named.
    """
    artifacts = open_artifact_store(settings.resolved_artifacts_url(), copies=copies)
    runners = RunnerPool(
        device=settings.device,
        threads=settings.threads or None,
        max_processes=settings.max_processes,
        load_timeout_s=settings.load_timeout_seconds,
        run_timeout_s=settings.run_timeout_seconds,
        max_classes=settings.max_classes,
        max_nodes=settings.max_model_nodes,
        sandbox=SandboxRules(
            allow_unsandboxed=settings.allow_unsandboxed,
            memory_bytes=settings.max_process_memory,
            file_bytes=settings.max_predict_bytes,
        ),
        answered=metrics.runs.answered,
    )
    limits = DatasetLimits(
        max_samples=settings.max_samples,
        max_classes=settings.max_classes,
        max_inflated_bytes=settings.max_inflated_bytes,
    )
    return ShardTools(artifacts, runners, OpenModels(artifacts), limits)
