"""Thresholds up to which answers are accepted, as the service represents them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self, TypeAlias

from howsure.client.records import NAME, Record, record_of

Interval: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class ClassShare(Record):
    """Accepted samples of some kind, the errors among them, and their share with its interval.

    Without samples, ``share`` and ``interval`` are None.
    """

    n_samples: int
    n_errors: int
    share: float | None
    interval: Interval | None


@dataclass(frozen=True)
class ClassErrors(Record):
    """Errors that concern the class with an index: of answers that name it, and of its samples."""

    index: int
    named: ClassShare
    labelled: ClassShare


@dataclass(frozen=True)
class Effect(Record):
    """What a threshold accepts on a labelled set.

    Attributes
    ----------
    n_samples, n_accepted, n_errors
        Samples of the set, those that are accepted, and those of them that are wrong.
    coverage, risk, errors
        Accepted share of the samples, error rate of the accepted ones (None if none is accepted),
        and share of all samples that are accepted and wrong, each in 0 to 1 with its interval.
    weighted
        Whether the samples have weights, which the shares follow.
    by_class
        The five classes with the largest shares of errors among accepted samples, the worst first;
        empty for pairs, further sets, and decisions of earlier releases.
    """

    n_samples: int
    n_accepted: int
    n_errors: int
    coverage: float
    coverage_interval: Interval
    risk: float | None
    risk_interval: Interval | None
    errors: float
    errors_interval: Interval
    weighted: bool
    by_class: tuple[ClassErrors, ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON of the service."""
        weighted = (document.get("effective") or {}).get("weighted")
        return record_of(cls, document, weighted=bool(weighted))


@dataclass(frozen=True)
class Consequences(Effect):
    """What a threshold accepts on the calibration set, and on other labelled sets.

    ``evaluation`` is None without an evaluation set. ``further`` has the further sets by name; a
    preview has none.
    """

    evaluation: Effect | None
    further: Mapping[str, Effect]


@dataclass(frozen=True)
class ExpectedVolume(Record):
    """Of ``volume`` answers, how many are accepted, wrong among these, and left for review."""

    volume: int
    accepted: float
    accepted_interval: Interval
    errors: float
    errors_interval: Interval
    reviewed: float


@dataclass(frozen=True)
class OperatingPointPreview(Record):
    """The threshold of a choice and its effect; ``resource`` is the JSON of the service.

    Attributes
    ----------
    threshold
        The largest uncertainty of Top-1 that would be accepted, or the smallest score of pairs;
        None if no threshold keeps the error rate low enough.
    measure
        The uncertainty measure that has the threshold.
    design
        ``weight``, ``group`` or both, if the calibration samples have them; the error rate is then
        tested approximately.
    certified
        Whether the threshold was chosen by an error rate, which was tested and holds with
        confidence ``1 - delta``.
    assurance
        How a tested error rate is known: ``certified``, or why it is only estimated.
    max_risk
        The requested error rate; for another choice the smallest that would pass the test with as
        many accepted answers, None if there is none.
    consequences
        None without a threshold, and for an imported calibration, which has no samples.
    labels_missing
        If no threshold meets the error rate, about how many more labelled samples would allow one;
        None if these samples do not tell.
    out_of_reach
        Whether more labelled samples would clearly not allow one.
    expected
        Expected counts, if ``volume`` was given.
    """

    threshold: float | None
    measure: str
    design: tuple[str, ...]
    certified: bool
    assurance: str | None
    max_risk: float | None
    delta: float
    consequences: Consequences | None
    labels_missing: int | None
    out_of_reach: bool
    expected: ExpectedVolume | None
    resource: Mapping[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class OperatingPoint(Record):
    """One decision about a calibration; ``resource`` is the JSON of the service.

    Attributes
    ----------
    number
        Decisions of a calibration are numbered from 1.
    active
        Whether answers follow it now.
    name, threshold, chosen_by, consequences
        Its name in ``abstain``, the largest accepted uncertainty of Top-1 (of pairs, the smallest
        accepted score), how it was chosen, and its effect. All are None for a withdrawal.
    author, reason, created_at
        Who decided, why, and when, in UTC.
    warnings
        Why the calibration should not be used, in sentences; only of the active one.
    """

    number: int
    active: bool = field(metadata={NAME: "in_force"})
    name: str | None
    threshold: float | None
    chosen_by: Mapping[str, float] | None
    consequences: Consequences | None = field(repr=False)
    author: str
    reason: str
    created_at: datetime
    warnings: tuple[str, ...]
    resource: Mapping[str, Any] = field(repr=False, compare=False)
