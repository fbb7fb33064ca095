"""The context for recording shards, from the settings: for the service and cluster workers."""

from pathlib import Path

from service.jobs.recording import RecordingContext
from service.metrics.metrics import Metrics
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.sandbox_rules import SandboxRules
from service.runner.model_files import OpenModels
from service.runner.pool import RunnerPool
from service.runner.process import RunnerProcess
from service.runner.spawner import StartChild
from service.settings import Settings
from service.storage.artifact_store import open_artifact_store


def open_recording_context(
    settings: Settings,
    metrics: Metrics,
    *,
    copies: Path | None = None,
    start_child: StartChild = RunnerProcess.start,
) -> RecordingContext:
    """Open the artifact store and the runner pool; no process is started yet.

    Parameters
    ----------
    settings : Settings
    metrics : Metrics
        Counts the runs of models.
    copies : Path, optional
        The folder for copies of remote artifacts; by default a temporary one.
    start_child : callable
        Starts the processes that run ONNX models.
    """
    artifacts = open_artifact_store(settings.resolved_artifacts_url(), copies=copies)
    runners = RunnerPool(
        device=settings.device,
        threads=settings.threads or None,
        max_processes=settings.max_processes,
        load_timeout_s=settings.load_timeout_seconds,
        trial_timeout_s=settings.trial_timeout_seconds,
        run_timeout_s=settings.run_timeout_seconds,
        read_timeout_s=settings.read_timeout_seconds,
        fit_timeout_s=settings.fit_timeout_seconds,
        max_classes=settings.max_classes,
        max_nodes=settings.max_model_nodes,
        sandbox=SandboxRules(
            allow_unsandboxed=settings.allow_unsandboxed,
            memory_bytes=settings.max_process_memory,
            file_bytes=settings.max_predict_bytes,
        ),
        answered=metrics.runs.answered,
        start_child=start_child,
    )
    limits = DatasetLimits(
        max_samples=settings.max_samples,
        max_classes=settings.max_classes,
        max_inflated_bytes=settings.max_inflated_bytes,
    )
    return RecordingContext(artifacts, runners, OpenModels(artifacts), limits)
