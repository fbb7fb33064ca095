"""``kill -9`` of the one serving process on SQLite, at any moment of its jobs."""

import random
import time
from pathlib import Path

from fault_plan.checker import Checker, check_files
from fault_plan.figures import Figures
from fault_plan.published import run_undisturbed
from fault_plan.site import Site, kill
from fault_plan.stored_jobs import half_visible, stored_jobs
from fault_plan.traffic import Reader, Traffic, Uploader
from fault_plan.uploads import Ledger, mixed_uploads

UPLOADERS = 2
WORKERS = 2
# Share of kills that wait for a job to begin; the others happen at any time, also in uploads.
AT_JOBS = 0.75
JOB_SECONDS = 60.0


def kill_server(folder: Path, *, times: int = 200, seed: int, copies: int = 20) -> Figures:
    """Kill it ``times`` times while clients upload, and start it again each time."""
    figures, generator = Figures("kill-server", seed), random.Random(seed)
    site, ledger, uploads = Site(folder, workers=str(WORKERS)), Ledger(), mixed_uploads(copies)
    with site.serving() as client:
        undisturbed = run_undisturbed(client, site.database_url, uploads)
    reader = Reader(undisturbed)
    uploader = Uploader(ledger, uploads, unfinished=UPLOADERS + WORKERS)

    process = site.serve()
    with Traffic(site, figures, [uploader] * UPLOADERS + [reader]):
        for _ in range(times):
            if generator.random() < AT_JOBS:
                _wait_for_a_job(site)
            time.sleep(generator.uniform(0, undisturbed.job_seconds))
            killed_at = time.monotonic()
            kill(process)
            jobs = stored_jobs(site.database_url)
            running = [job for job in jobs if job.status == "running"]
            figures.strike(job.stage or "claimed" for job in running)
            figures.violations += half_visible(jobs, undisturbed.rows)
            process = site.serve()
            figures.recovery_seconds.append(time.monotonic() - killed_at)
    kill(process)

    with site.serving() as client:
        Checker(site, ledger, undisturbed, figures).check(client)
    check_files(site, figures)
    figures.more |= {"job_s": round(undisturbed.job_seconds, 2), "looked": reader.looked}
    return figures


def _wait_for_a_job(site: Site) -> None:
    until = time.monotonic() + JOB_SECONDS
    with site.client() as client:
        while not client.get("/calibrations", params={"status": "running"}).json()["calibrations"]:
            assert time.monotonic() < until, "no job began"
            time.sleep(0.02)
