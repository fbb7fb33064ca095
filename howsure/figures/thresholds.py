"""The chart of thresholds: the risk-coverage curve, its band and its operating points."""

from collections.abc import Sequence

import numpy as np

from howsure.figures.figure import Column, Figure, Served, Table, served_events
from howsure.numbers import rough_count
from howsure.pictures.charts.thresholds import RiskCurve, Threshold, risk_coverage
from howsure.pictures.picture import WIDE
from howsure.report.event import Event, TestedRisk
from howsure.report.located import Located
from howsure.report.measure import RiskBand, RiskCoverage
from howsure.report.parts import ErrorRate
from howsure.report.report import ActivePoint, Consequences, Report
from howsure.report.words import text
from howsure.report.words.learned import is_exact_test
from howsure.report.words.summary import active_point
from howsure.statistics.measures.scale import scale_of
from howsure.statistics.operating_point import Effect
from howsure.statistics.selective import SelectiveResult, tested_bound

RISK_COVERAGE = "risk_coverage"
TABLE_STEPS = 20
COLUMNS = (
    Column("accepted", text.percent),
    Column("error rate among them", text.percent),
    Column("from", text.percent),
    Column("to", text.percent),
)


def risk_coverage_figures(report: Report) -> list[Figure]:
    """Return one figure an event, of the measure that is served, where curves were kept."""
    return [
        _figure(report, served, served.table.curves.risk_coverage, served.table.curves.risk_band)
        for served in served_events(report)
        if served.table.curves.risk_coverage is not None
        and served.table.curves.risk_band is not None
    ]


def _figure(report: Report, served: Served, curve: RiskCoverage, band: RiskBand) -> Figure:
    k, event, table, at = served
    point = active_point(report, k)
    effect = None if point is None else point.consequences
    n_points = len(curve.coverage)
    step = max(n_points // TABLE_STEPS, 1)
    places = sorted({*range(0, n_points, step), n_points - 1})
    scale = scale_of(event.served)
    bound = _bound(report, event, table.selective, band)
    risk = event.figures.risk
    thresholds = [_threshold(target, risk) for target in table.selective]
    drawn = RiskCurve(curve.coverage, curve.risk, band.lower, band.upper, bound)
    tested = {target.threshold for target in table.selective}
    diamonds = f"error rates {event.assurance}"
    if point is not None and effect is not None and point.threshold not in map(scale.of, tested):
        diamonds += ", and the active operating point"
        thresholds.insert(0, _threshold_of_point(point, effect))
    return Figure(
        chart=RISK_COVERAGE,
        key=k,
        title=_title(k, table.selective)
        if point is None or effect is None
        else _title_of_point(k, point, effect),
        note=f"{text.count(band.accepted[-1])} calibration samples, the most certain first by "
        f"{text.name(event.served)}. Band: {text.requested(band.level)} interval of each "
        f"point. {'Grey: the bound that the test holds against the promise. ' if bound else ''}"
        f"Dashed: what is promised. Diamonds: {diamonds}.",
        picture=risk_coverage(drawn, thresholds),
        wide=risk_coverage(drawn, thresholds, WIDE),
        table=Table(
            (*COLUMNS, Column("threshold", lambda end: text.number(scale.of(end)))),
            [_cells(at["curves"], place) for place in places],
        ),
    )


def _bound(
    report: Report, event: Event, targets: Sequence[SelectiveResult], band: RiskBand
) -> list[float] | None:
    """Return what the test compares with a promised error rate; None if it is approximate."""
    design, deltas = report.provenance.data.get("design"), {one.target.delta for one in targets}
    if not is_exact_test(event.assurance, design) or len(deltas) != 1:
        return None
    errors, accepted = np.array(band.errors), np.array(band.accepted)
    bound: list[float] = tested_bound(errors, accepted, deltas.pop()).tolist()
    return bound


def _threshold(target: SelectiveResult, risk: TestedRisk | None) -> Threshold:
    """Return the threshold of a requested error rate; that of ``risk`` has an evaluation set."""
    max_risk, n_accepted = target.target.max_risk, target.n_accepted
    is_first = risk is not None and risk.max_risk == max_risk
    return Threshold(
        f"≤ {text.requested(max_risk)}",
        target.coverage,
        target.n_errors / n_accepted if n_accepted else None,
        max_risk,
        _on_evaluation(risk.evaluation if is_first and risk is not None else None),
    )


def _on_evaluation(counts: ErrorRate | Effect | None) -> tuple[float, float] | None:
    """Return what is accepted of the evaluation set, and the error rate."""
    if counts is None or not counts.n_accepted:
        return None
    return counts.coverage, counts.n_errors / counts.n_accepted


def _threshold_of_point(point: ActivePoint, accepted: Consequences) -> Threshold:
    return Threshold(
        text.name(point.name),
        accepted.coverage,
        accepted.n_errors / accepted.n_accepted if accepted.n_accepted else None,
        point.chosen_by.get("max_risk"),
        _on_evaluation(accepted.evaluation),
    )


def _cells(curves: Located, at: int) -> list[Located]:
    curve, band = curves["risk_coverage"], curves["risk_band"]
    parts = (curve["coverage"], curve["risk"], band["lower"], band["upper"], curve["threshold"])
    return [part[at] for part in parts]


def _title(k: str, targets: Sequence[SelectiveResult]) -> str:
    if not targets:
        return f"{text.event(k)}: error rate among accepted answers"
    target = targets[0]
    bound = text.requested(target.target.max_risk)
    if target.threshold is not None:
        return (
            f"{text.event(k)}: {text.percent(target.coverage)} can be accepted with an error "
            f"rate of at most {bound}"
        )
    missing = target.labels_missing
    labels = "" if missing is None else f"; about {rough_count(missing)} more labels are needed"
    return f"{text.event(k)}: an error rate of at most {bound} cannot be proven{labels}"


def _title_of_point(k: str, point: ActivePoint, accepted: Consequences) -> str:
    max_risk = point.chosen_by.get("max_risk")
    title = (
        f"{text.event(k)}: “{text.name(point.name)}”, the active operating point, accepts "
        f"{text.percent(accepted.coverage)}"
    )
    if max_risk is not None:
        return f"{title} with an error rate of at most {text.requested(max_risk)}"
    return (
        title
        if accepted.risk is None
        else f"{title}; {text.percent(accepted.risk)} of these are wrong"
    )
