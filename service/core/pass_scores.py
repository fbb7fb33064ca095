"""What more passes are worth: scores of each measure by how many of its passes are looked at."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.core.arrays import Hits, Uncertainty
from service.core.measures import PERTURBATIONS, Perturbation, prefix_column
from service.core.plain_data import PlainData
from service.core.records import Records
from service.core.scores.auroc import auroc
from service.core.scores.tied_blocks import tied_blocks


@dataclass(frozen=True)
class PassesRow(PlainData):
    """Scores of the first ``passes`` runs of a model.

    Attributes
    ----------
    passes : int
    accuracy : dict of int to float, optional
        Share of labels among the ``k`` top classes of their mean probability, by ``k``; None for
        a measure whose passes have no mean.
    nll : float or None
        Mean of ``-log p_y`` of their mean probability, nats; None where a label has probability 0,
        and where there is no mean.
    auroc : dict of int to float or None
        By ``k``, how well the measure made of them finds the samples for which the prediction
        misses the Top-k event; None without a miss or without a hit, and for a single pass that
        has no spread.
    """

    passes: int
    accuracy: dict[int, float] | None
    nll: float | None
    auroc: dict[int, float | None]


def pass_scores(records: Records, *, top_k: Sequence[int]) -> dict[str, tuple[PassesRow, ...]]:
    """Return the scores of each measure whose passes the records hold, ascending in passes.

    At least one sample; each event with ``k`` no larger than the classes the records keep.
    """
    rows = {name: _rows(records, measure, top_k) for name, measure in PERTURBATIONS.items()}
    return {name: found for name, found in rows.items() if found}


def _rows(records: Records, measure: Perturbation, top_k: Sequence[int]) -> tuple[PassesRow, ...]:
    held = records.mean_log_probability if measure.averages else records.uncertainty
    start = prefix_column(measure.name, 0).removesuffix("0")
    every = sorted(int(name.removeprefix(start)) for name in held if name.startswith(start))
    # What all passes give goes by the measure's own name.
    columns = {n: measure.name if n == every[-1] else prefix_column(measure.name, n) for n in every}
    return tuple(
        _row(records, measure, n, uncertainty=records.uncertainty.get(column), top_k=top_k)
        for n, column in columns.items()
    )


def _row(
    records: Records,
    measure: Perturbation,
    n: int,
    *,
    uncertainty: Uncertainty | None,
    top_k: Sequence[int],
) -> PassesRow:
    name = prefix_column(measure.name, n)
    accuracy, nll = None, None
    if measure.averages:
        ranks, log_p = records.mean_label_rank[name], records.mean_log_probability[name]
        accuracy = {k: float(np.mean(ranks < k)) for k in top_k}
        nll = float(-np.mean(log_p)) if np.isfinite(log_p).all() else None
    return PassesRow(
        passes=n,
        accuracy=accuracy,
        nll=nll,
        auroc={k: _auroc(uncertainty, records.hits(k)) for k in top_k},
    )


def _auroc(uncertainty: Uncertainty | None, hits: Hits) -> float | None:
    if uncertainty is None:
        return None
    blocks = tied_blocks(uncertainty, hits)
    return auroc(blocks.counts - blocks.errors, blocks.errors)
