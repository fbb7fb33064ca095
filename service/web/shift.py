"""``/pages/calibrations/{id}/shift``: stress sets side by side, and their quartiles as CSV."""

from starlette.requests import Request
from starlette.responses import Response

from howsure.report.located import Located
from howsure.report.stress import QUARTILES, Stress, quartile_rows
from howsure.report.words.compared_methods import NAMES
from howsure.report.words.stress import stress_sentences
from service.reports.charts.registry import CHARTS_OF_SHIFT, render_figures
from service.reports.csv_table import csv_text
from service.reports.report import collect_report
from service.web.page import calibration_page
from service.web.page_route import subject_of


def shift(request: Request) -> Response:
    """Show what becomes of stated probabilities and of the promise as data drift."""
    report = collect_report(*subject_of(request))
    stress, located = Stress.of(report), Located(report)
    address = f"/pages/calibrations/{report.calibration.id}"
    return calibration_page(
        request,
        "shift.html",
        "shift",
        report.calibration,
        k=stress.k,
        names=NAMES,
        sentences=list(stress_sentences(stress)),
        sets=[located["evaluations"][one.at] for one in stress.sets],
        has_intensities=bool(stress.intensities),
        kinds=[str(at) for at in range(len(stress.steps))],
        chart=render_figures(report, CHARTS_OF_SHIFT, address=f"{address}/charts"),
        table_address=f"{address}/shift.csv",
    )


def quartiles(request: Request) -> Response:
    """Return the quartiles of each score over the kinds of change, by intensity and method."""
    report = collect_report(*subject_of(request))
    rows = quartile_rows(Stress.of(report))
    return Response(csv_text(QUARTILES, rows), media_type="text/csv; charset=utf-8")
