"""Displays of a report by matplotlib, for papers: they need the extra ``plot``.

Each is made as displays of scikit-learn are: ``ReliabilityDisplay.from_report(report, ax=ax)``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from matplotlib import pyplot as plt

from howsure.report.event import Event
from howsure.report.measure import Measure
from howsure.report.report import Report
from howsure.statistics.diagnostics.reliability import ReliabilityRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart without colour vision, and in grey.
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#767676"
FEW = 0.2  # of the answers: the interval of fewer may leave the axes
ROOM = 1.1


class _Display:
    """A display of one event.

    Parameters
    ----------
    report : Report
    event : str
        ``1`` for Top-1.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    ax_: "Axes"
    figure_: "Figure | None"

    def __init__(self, report: Report, event: str = "1") -> None:
        if event not in report.events:
            raise ValueError(f"event must be one of {', '.join(report.events)}, not {event!r}")
        self.report = report
        self.event = event

    @classmethod
    def from_report(cls, report: Report, *, event: str = "1", ax: "Axes | None" = None) -> Self:
        """Draw a display of a report, on axes of its own by default.

        Raises
        ------
        ValueError
            If the report lacks the event, or what is drawn.
        """
        return cls(report, event).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw it, and return it."""
        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.get_figure(root=True)
        self._draw(self.ax_)
        return self

    def _draw(self, ax: "Axes") -> None:
        raise NotImplementedError

    @property
    def _of_event(self) -> Event:
        return self.report.events[self.event]

    @property
    def _served(self) -> Measure:
        return self._of_event.measures[self._of_event.served]

    def _lacks(self, what: str) -> ValueError:
        return ValueError(f"this report has no {what} of Top-{self.event}")


class ReliabilityDisplay(_Display):
    """Hit rates against probabilities on held-out samples: the model's own, and the served ones."""

    def _draw(self, ax: "Axes") -> None:
        reliability = self._served.reliability
        if reliability is None:
            raise self._lacks("reliability")
        ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="calibrated")
        _draw_rows(ax, reliability.before, color=ORANGE, marker="s", label="before")
        _draw_rows(ax, reliability.after, color=BLUE, marker="o", label="after")
        ax.set(xlabel="mean probability", ylabel="share of correct answers", xlim=(0, 1))
        ax.set(ylim=(0, 1), aspect="equal", title=f"Top-{self.event}, held out")
        ax.legend(loc="upper left")


class RiskCoverageDisplay(_Display):
    """The error rate among accepted answers, by the share accepted, with band and promises."""

    def _draw(self, ax: "Axes") -> None:
        table = self._served
        curve, band = table.curves.risk_coverage, table.curves.risk_band
        if curve is None or band is None:
            raise self._lacks("risk-coverage curve")
        label = f"{band.level:.0%} interval of each point"
        ax.fill_between(curve.coverage, band.lower, band.upper, color=BLUE, alpha=0.2, label=label)
        ax.plot(curve.coverage, curve.risk, color=BLUE, label="error rate")
        for result in table.selective:
            ax.axhline(result.target.max_risk, color=GREY, linestyle="--", linewidth=1)
            if result.coverage is not None:
                risk = result.n_errors / result.n_accepted
                ax.plot(result.coverage, risk, "D", color=ORANGE)
        ax.set(xlabel="share of answers accepted", ylabel="error rate among them")
        ax.set(xlim=(0, 1), title=f"Top-{self.event}, by {self._of_event.served}")
        far = [upper for upper, x in zip(band.upper, curve.coverage, strict=True) if x >= FEW]
        promised = [result.target.max_risk for result in table.selective]
        ax.set_ylim(0, ROOM * max([*far, *promised], default=1.0))
        ax.legend(loc="upper left")


class ShiftDisplay(_Display):
    """Accuracy and mean stated probability on each labelled further set, oldest first."""

    def _draw(self, ax: "Axes") -> None:
        sets = [
            (one.name, one.events[self.event])
            for one in self.report.evaluations
            if one.labelled and self.event in one.events
        ]
        if not sets:
            raise self._lacks("labelled further set")
        names = [name for name, _ in sets]
        ax.axhline(self._of_event.accuracy, color=GREY, linestyle=":", label="calibration set")
        ax.plot(names, [of.stated for _, of in sets], "D-", color=ORANGE, label="stated")  # type: ignore[arg-type]
        ax.plot(names, [of.accuracy for _, of in sets], "o-", color=BLUE, label="correct")  # type: ignore[arg-type]
        ax.set(xlabel="further set", ylabel="share of correct answers", title=f"Top-{self.event}")
        ax.legend(loc="best")


def _draw_rows(ax: "Axes", rows: Sequence[ReliabilityRow], **look: Any) -> None:  # noqa: ANN401
    rates = [row.hit_rate for row in rows]
    ends = [
        [rate - row.lower for rate, row in zip(rates, rows, strict=True)],
        [row.upper - rate for rate, row in zip(rates, rows, strict=True)],
    ]
    ax.errorbar(
        [row.said for row in rows], rates, ends, linestyle="none", elinewidth=1, capsize=2, **look
    )
