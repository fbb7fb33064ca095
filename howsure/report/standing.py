"""What decides whether a calibration is fit for automatic use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from howsure.report.event import TestedRisk, Verdict
from howsure.report.further_set import Counts, FurtherSet
from howsure.report.parts import FIRST
from howsure.report.report import ActivePoint, Consequences, Report
from howsure.report.words.disproof import NamedEvents
from howsure.statistics.selective import SelectiveResult


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What decides whether a calibration is fit for automatic use.

    Attributes
    ----------
    k : str
        The event that it is about.
    n_warnings : int
    evaluations : sequence of FurtherSet or NamedEvents
        The further sets of traffic.
    accuracy, assurance, verdict
        Of the event.
    selective : sequence of SelectiveResult
        Of its served measure.
    risk : TestedRisk, optional
        The first requested error rate that passed its test.
    point : ActivePoint, optional
        The active operating point.
    data : mapping
        Of the calibration set.
    """

    k: str
    n_warnings: int
    evaluations: Sequence[FurtherSet | NamedEvents]
    accuracy: float
    assurance: str
    verdict: Verdict | None
    selective: Sequence[SelectiveResult]
    risk: TestedRisk | None
    point: ActivePoint | None
    data: Mapping[str, Any]

    @classmethod
    def of(cls, report: Report) -> "Standing":
        """Return that of a report."""
        k = FIRST if FIRST in report.events else next(iter(report.events))
        return cls.of_event(report, k)

    @classmethod
    def of_event(cls, report: Report, k: str) -> "Standing":
        """Return that of a report, by one of its events."""
        event = report.events[k]
        return cls(
            k=k,
            n_warnings=sum(finding.level == "warning" for finding in report.findings),
            evaluations=report.traffic,
            accuracy=event.accuracy,
            assurance=event.assurance,
            verdict=event.verdict,
            selective=event.measures[event.served].selective,
            risk=event.figures.risk,
            point=report.operating_point,
            data=report.provenance.data,
        )

    @property
    def accepted(self) -> tuple[ActivePoint, Consequences] | None:
        """The active operating point, which is one of Top-1, and its effect, if that is known."""
        point = self.point if self.k == FIRST else None
        if point is None or point.consequences is None:
            return None
        return point, point.consequences

    @property
    def promised(self) -> "Promise | None":
        """The tested error rate that the verdict is about.

        It is that of the active operating point, where one is active.
        """
        if self.accepted is not None:
            point, seen = self.accepted
            target = point.chosen_by
            if "max_risk" not in target:
                return None
            return Promise(target["max_risk"], target["delta"], seen.coverage, seen.evaluation)
        risk = self.risk
        if risk is None:
            return None
        return Promise(risk.max_risk, risk.delta, risk.coverage, risk.evaluation)


@dataclass(frozen=True)
class Promise:
    """A tested error rate, the share of answers that it holds for, and the evaluation set's counts.

    It fails with probability ``delta``.
    """

    max_risk: float
    delta: float
    coverage: float
    evaluation: Counts | None
