"""What the processes of one service have counted, those that are gone included."""

from collections.abc import Iterable, Sequence

from service.metrics.answers import MOST_CALIBRATIONS
from service.metrics.families import Family, Labels, as_text
from service.metrics.merged import fallen, merged

OF_A_CALIBRATION = frozenset({"calibration", "version"})


class Tally:
    """What each process told last; what one of them lost is kept, so that no count falls.

    Of calibrations that no process tells of any more the ``most`` that were lost last are kept.
    """

    def __init__(self, most: int = MOST_CALIBRATIONS) -> None:
        self._most = most
        self._told: dict[int, list[Family]] = {}
        self._lost: list[Family] = []

    def tell(self, process: int, families: list[Family]) -> None:
        """Take what a process has counted up to now."""
        lost = fallen(self._told.get(process, []), families)
        self._told[process] = families
        self._keep(lost)

    def end(self, process: int) -> None:
        """Keep what a process had counted, for it is gone."""
        self._keep(fallen(self._told.pop(process, []), []))

    def text(self, asking: int) -> bytes:
        """Return the sum of all, as asked for by a process that has just told."""
        others = [told for process, told in self._told.items() if process != asking]
        return as_text(merged([self._told[asking], *others, self._lost]))

    def _keep(self, lost: Sequence[Family]) -> None:
        if not lost:
            return
        # Those lost last come first.
        self._lost = merged([lost, self._lost])
        told = {found for families in self._told.values() for found in _calibrations(families)}
        only_here = [found for found in _calibrations(self._lost) if found not in told]
        dropped = set(only_here[self._most :])
        if dropped:
            self._lost = [_without(family, dropped) for family in self._lost]


def _calibrations(families: Iterable[Family]) -> list[Labels]:
    """Return the calibrations that series are of, in their order."""
    found = (_calibration(labels) for family in families for _, labels in family.values)
    return list(dict.fromkeys(labels for labels in found if labels))


def _calibration(labels: Labels) -> Labels:
    return tuple(label for label in labels if label[0] in OF_A_CALIBRATION)


def _without(family: Family, calibrations: set[Labels]) -> Family:
    kept = {
        series: value
        for series, value in family.values.items()
        if _calibration(series[1]) not in calibrations
    }
    return Family(family.name, family.documentation, family.type, kept)
