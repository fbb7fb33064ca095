"""A report in a notebook: its summary and pictures."""

from howsure.figures.charts import CHARTS, report_figures
from howsure.figures.figure import Figure
from howsure.figures.reliability_diagrams import RELIABILITY_DIAGRAMS
from howsure.pictures.lettering import xml_text
from howsure.pictures.palette import PALETTE, paint
from howsure.report.report import Report, Summary

# Without the five diagrams of each event that differ in their bins only.
NOTEBOOK_CHARTS = tuple(name for name in CHARTS if name != RELIABILITY_DIAGRAMS)
LOOK = f"background:{PALETTE['ground'][0]};color:{PALETTE['ink'][0]};max-width:24em;padding:8px"


def notebook_html(report: Report) -> str:
    """Return a report as HTML without scripts; pictures are on white, in any theme.

    Texts of users, such as names of classes, are escaped; what is not printable is replaced.
    """
    head = "" if report.summary is None else _summary_html(report.summary)
    return head + "".join(map(_figure_html, report_figures(report, NOTEBOOK_CHARTS)))


def _summary_html(summary: Summary) -> str:
    sentences = "".join(f"<li>{xml_text(sentence)}</li>" for sentence in summary.sentences)
    return f"<h3>{xml_text(summary.headline)}</h3><ul>{sentences}</ul>"


def _figure_html(figure: Figure) -> str:
    return (
        f'<figure style="{LOOK}"><figcaption><b>{xml_text(figure.title)}</b><br>'
        f"{xml_text(figure.note)}</figcaption>{paint(figure.svg(), 'light')}</figure>"
    )
