"""Digests of what a calibration has published, and those of an undisturbed run."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx

from fault_plan.stored_jobs import stored_jobs
from fault_plan.uploads import Upload

# Fields of a report that differ from run to run: names, times, cost of a row.
RUNS_OWN = ("calibration", "provenance", "comparison", "costs", "created_at", "finished_at", "id")


# The end of the names of undisturbed runs.
UNDISTURBED = "undisturbed"


@dataclass(frozen=True)
class Undisturbed:
    """Digests, numbers of rows and seconds of undisturbed runs, by kind.

    Tables are also compared alone, because reading them is much faster than a report.
    """

    tables: dict[str, str] = field(default_factory=dict)
    reports: dict[str, str] = field(default_factory=dict)
    rows: dict[str, tuple[int, ...]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def job_seconds(self) -> float:
        """Return the time of the longest run."""
        return max(self.seconds.values())


def run_undisturbed(
    client: httpx.Client, database_url: str, uploads: Sequence[Upload]
) -> Undisturbed:
    """Run each upload alone."""
    found = Undisturbed()
    for upload in uploads:
        answer = upload.send(client, f"{upload.kind}-{UNDISTURBED}", wait=120)
        made = answer.json()
        assert made.get("status") == "succeeded", answer.text
        found.seconds[upload.kind] = _seconds(made)
        found.tables[upload.kind] = tables_digest(client, made["id"])
        found.reports[upload.kind] = report_digest(client, made["id"])
    for job in stored_jobs(database_url):
        found.rows[job.kind] = job.results
    return found


def tables_digest(client: httpx.Client, calibration: str) -> str:
    """Return the digest of all bins of all tables, or of the status if there are none."""
    return _digest(client.get(f"/calibrations/{calibration}/bins"), lambda found: found["tables"])


def report_digest(client: httpx.Client, calibration: str) -> str:
    """Return the digest of the report: tables of all measures, scores, baselines."""
    return _digest(client.get("/report", params={"calibration": calibration}), _without)


def _without(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without(part) for name, part in value.items() if name not in RUNS_OWN}
    return [_without(part) for part in value] if isinstance(value, list) else value


def _digest(answer: httpx.Response, part: Callable[[Any], object]) -> str:
    if answer.status_code != httpx.codes.OK:
        return str(answer.status_code)
    value = part(answer.json())
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _seconds(made: dict) -> float:
    created, ended = (datetime.fromisoformat(made[name]) for name in ("created_at", "finished_at"))
    return (ended - created).total_seconds()
