"""What the sweeper found in the artifact store."""

from prometheus_client import CollectorRegistry, Counter


class SweepMetrics:
    """Sweeps of this process, by how they ended, and the files that they saw and removed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sweeps = Counter(
            "howsure_sweeps",
            "Sweeps of the artifact store, by how they ended.",
            ["outcome"],
            registry=registry,
        )
        for outcome in ("finished", "failed"):
            self._sweeps.labels(outcome)
        self._seen = Counter(
            "howsure_swept_files", "Files that those sweeps looked at.", registry=registry
        )
        self._removed = Counter(
            "howsure_orphans_removed",
            "Files among them that nothing referred to.",
            registry=registry,
        )

    def swept(self, *, files: int, removed: int) -> None:
        """Count a sweep that came to its end."""
        self._sweeps.labels("finished").inc()
        self._seen.inc(files)
        self._removed.inc(removed)

    def failed(self) -> None:
        """Count a sweep that broke off."""
        self._sweeps.labels("failed").inc()
