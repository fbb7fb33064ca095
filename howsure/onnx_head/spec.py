"""The content of a calibrated file, as plain data for the process that writes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from howsure.events import TabledEvent
from howsure.statistics.bins.lookup import LookupTable
from howsure.statistics.input_ranges import ColumnRanges, InputRange
from howsure.statistics.label_model.model import LabelModel
from howsure.statistics.learned.model import LearnedModel


@dataclass(frozen=True, eq=False)
class ExportEvent:
    """One event with its bin table.

    Attributes
    ----------
    k : int
    column : str
        The measure's column: of the head, of a scalar output, or of last-layer dropout.
    table : LookupTable
    learned : LearnedModel, optional
        Where the learned measure of an earlier version serves the event.
    """

    k: int
    column: str
    table: LookupTable
    learned: LearnedModel | None = None


def export_events(events: Sequence[TabledEvent]) -> tuple[ExportEvent, ...]:
    """Return the events of a file, without the model of the labels, which they share."""
    own = {event.k: event.learned for event in events if isinstance(event.learned, LearnedModel)}
    return tuple(ExportEvent(one.k, one.column, one.table, own.get(one.k)) for one in events)


@dataclass(frozen=True, eq=False, kw_only=True)
class ExportSpec:
    """Everything a calibrated file holds besides the model.

    Attributes
    ----------
    events : tuple of ExportEvent
        At least one, with distinct k.
    n_top : int
        Number of top classes in the output.
    n_classes : int
    ood_threshold : float or None
        Samples with a larger Top-1 uncertainty are flagged; None for no such output.
    least_uncertainty : float or None
        Of scores: samples with a smaller one are flagged, too.
    input_ranges : tuple of (str, InputRange)
        By input; samples outside are flagged, too.
    column_ranges : tuple of (str, ColumnRanges)
        By input; the same for columns.
    accept_thresholds : tuple of (str, float or None)
        By maximal risk, as text, the largest accepted uncertainty of Top-1; None accepts nothing.
    metadata : mapping of str to str
        ``howsure.calibration`` and the like; ``howsure.prefix`` is added when the file is written.
    label_model : LabelModel, optional
        Where the measure ``learned`` serves an event.
    top_k : tuple of int
        All k of the serving graph's head, if there are others than those of the events, so that
        both give the same bits.

    """

    events: tuple[ExportEvent, ...]
    n_top: int
    n_classes: int
    ood_threshold: float | None
    accept_thresholds: tuple[tuple[str, float | None], ...]
    metadata: Mapping[str, str]
    label_model: LabelModel | None = None
    least_uncertainty: float | None = None
    top_k: tuple[int, ...] = ()
    input_ranges: tuple[tuple[str, InputRange], ...] = ()
    column_ranges: tuple[tuple[str, ColumnRanges], ...] = ()

    @property
    def head_top_k(self) -> tuple[int, ...]:
        """All k of the head, ascending."""
        return tuple(sorted({*self.top_k, *(event.k for event in self.events)}))
