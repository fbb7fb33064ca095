"""Clients that upload, read and predict while a fault is inflicted, and the checks afterwards."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from fault_plan.checker import WORKER_DIED, Checker
from fault_plan.figures import Figures
from fault_plan.published import Undisturbed, run_undisturbed
from fault_plan.site import Site
from fault_plan.traffic import KnownAnswers, Reader, Traffic, Uploader
from fault_plan.uploads import Ledger, Upload


@dataclass(frozen=True)
class Load:
    """What is known of the clients at work."""

    undisturbed: Undisturbed
    answers: KnownAnswers
    ledger: Ledger


@contextmanager
def under_load(
    site: Site,
    client: httpx.Client,
    uploads: Sequence[Upload],
    figures: Figures,
    *,
    uploaders: int = 1,
    unfinished: int,
    predictors: int = 0,
    steps: Sequence[Callable[[httpx.Client], None]] = (),
    reasons: tuple[str, ...] = (WORKER_DIED,),
) -> Iterator[Load]:
    """Keep so many jobs unfinished while the block runs; afterwards check what became of them.

    Without uploaders the block notes uploads in the ledger. A job may fail for the ``reasons``.
    """
    undisturbed, ledger = run_undisturbed(client, site.database_url, uploads), Ledger()
    answers = KnownAnswers(client, f"{uploads[0].kind}-undisturbed")
    reader = Reader(undisturbed)
    uploader = Uploader(ledger, uploads, unfinished=unfinished)
    all_steps = (
        [uploader] * uploaders + [reader] * min(uploaders, 1) + [answers] * predictors + [*steps]
    )
    with Traffic(site, figures, all_steps):
        yield Load(undisturbed, answers, ledger)
    Checker(site, ledger, undisturbed, figures, reasons=reasons).check(client)
    figures.more |= {
        "job_s": round(undisturbed.job_seconds, 2),
        "looked": reader.looked,
        "predictions": dict(answers.statuses),
        "slowest_prediction_s": round(answers.slowest, 2),
    }
