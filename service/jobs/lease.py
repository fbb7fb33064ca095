"""Keeping the lease of a job while it runs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from service.storage.job_queue import ClaimedJob, JobQueue, JobSignal

RENEWALS_PER_LEASE = 3

log = structlog.get_logger(__name__)


@contextmanager
def renewed_lease(queue: JobQueue, job: ClaimedJob) -> Iterator[threading.Event]:
    """Renew the lease from a thread of its own; the event is set when it is lost."""
    done, lost = threading.Event(), threading.Event()

    def renew() -> None:
        while not done.wait(queue.lease_seconds / RENEWALS_PER_LEASE):
            try:
                if queue.renew(job) is JobSignal.LOST:
                    lost.set()
                    return
            except Exception as error:  # noqa: BLE001 - it must try again, whatever it was
                # At the next beat: the lease outlives two failures. A traceback would take
                # its time to be written.
                log.warning("renewal_failed", id=str(job.id), error=repr(error))

    thread = threading.Thread(target=renew, name=f"lease-{job.id}", daemon=True)
    thread.start()
    try:
        yield lost
    finally:
        done.set()
        thread.join()
