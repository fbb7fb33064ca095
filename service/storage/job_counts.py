"""How many jobs there are, by kind and status."""

from collections.abc import Mapping
from typing import get_args

from sqlalchemy import func, literal, select, union_all
from sqlalchemy.orm import Session

from models import Calibration, Evaluation, JobStatus

_KINDS: Mapping[str, type[Calibration | Evaluation]] = {
    "calibration": Calibration,
    "evaluation": Evaluation,
}
_COUNTS = union_all(
    *(
        select(literal(kind), table.status, func.count()).group_by(table.status)
        for kind, table in _KINDS.items()
    )
)


def job_counts(session: Session) -> dict[tuple[str, str], int]:
    """Return the number of jobs of all tenants by kind and status, 0 where there are none."""
    counts = {(kind, status): 0 for kind in _KINDS for status in get_args(JobStatus)}
    for kind, status, count in session.execute(_COUNTS):
        counts[kind, status] = count
    return counts
