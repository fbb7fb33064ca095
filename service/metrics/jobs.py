"""Jobs by status, as they were when last asked for."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge


class JobMetrics:
    """Calibrations and evaluations by status, and whether the database told them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._jobs = Gauge(
            "howsure_jobs",
            "Jobs of the database, by kind and status.",
            ["kind", "status"],
            registry=registry,
        )
        self._database_up = Gauge(
            "howsure_database_up", "Whether the database answered this scrape.", registry=registry
        )

    def show(self, counts: Mapping[tuple[str, str], int] | None) -> None:
        """Show counts by kind and status; None, where the database did not tell them."""
        self._database_up.set(counts is not None)
        if counts is None:
            self._jobs.clear()
        else:
            for labels, count in counts.items():
                self._jobs.labels(*labels).set(count)
