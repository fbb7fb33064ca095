"""What several processes count, as if one had counted it."""

import operator
from collections.abc import Callable, Sequence

from service.metrics.families import Family, Series

CUMULATIVE = frozenset({"counter", "histogram", "summary"})
# The same whichever process asks the database: whoever asked last knows.
OF_THE_DATABASE = frozenset({"howsure_jobs", "howsure_database_up"})
# A restart of any process is to be seen.
LATEST = frozenset({"process_start_time_seconds"})


def merged(told: Sequence[Sequence[Family]]) -> list[Family]:
    """Return the families of all processes as one.

    Counts, histograms and summaries are summed by their labels, and so are gauges: each tells of
    its own process. The latest start is kept, and what the database holds is taken from the first
    process alone.
    """
    families: dict[str, Family] = {}
    for position, found in enumerate(told):
        for family in found:
            if position > 0 and family.name in OF_THE_DATABASE:
                continue
            known = families.get(family.name)
            if known is None:
                families[family.name] = family
            else:
                values = _joined(known.values, family.values, _rule(family))
                families[family.name] = _with(known, values)
    return list(families.values())


def fallen(before: Sequence[Family], after: Sequence[Family]) -> list[Family]:
    """Return what ``after`` holds no more of the counts in ``before``.

    A count that is lower than it was began anew: all that it had reached is lost, not the
    difference.
    """
    now = {family.name: family.values for family in after}
    found = []
    for family in before:
        if family.type in CUMULATIVE:
            values = now.get(family.name, {})
            lost = {
                series: value
                for series, value in family.values.items()
                if values.get(series, 0.0) < value
            }
            if lost:
                found.append(_with(family, lost))
    return found


def _rule(family: Family) -> Callable[[float, float], float]:
    return max if family.name in LATEST else operator.add


def _joined(
    first: dict[Series, float],
    second: dict[Series, float],
    rule: Callable[[float, float], float],
) -> dict[Series, float]:
    values = dict(first)
    for series, value in second.items():
        values[series] = rule(values[series], value) if series in values else value
    return values


def _with(family: Family, values: dict[Series, float]) -> Family:
    return Family(family.name, family.documentation, family.type, values)
