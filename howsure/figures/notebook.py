"""A report in a notebook: its summary and pictures."""

from html import escape

from howsure.figures.charts import report_figures
from howsure.pictures.palette import PALETTE, paint
from howsure.report.report import Report

LOOK = f"background:{PALETTE['ground'][0]};color:{PALETTE['ink'][0]};max-width:24em;padding:8px"


def notebook_html(report: Report) -> str:
    """Return a report as HTML without scripts; pictures are on white, in any theme."""
    summary = report.summary
    head = []
    if summary is not None:
        sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in summary.sentences)
        head = [f"<h3>{escape(summary.headline)}</h3><ul>{sentences}</ul>"]
    figures = [
        f'<figure style="{LOOK}"><figcaption><b>{escape(figure.title)}</b><br>'
        f"{escape(figure.note)}</figcaption>{paint(figure.svg(), 'light')}</figure>"
        for figure in report_figures(report)
    ]
    return "".join([*head, *figures])
