"""A report in a notebook: its summary and pictures."""

from html import escape

from howsure.figures.charts import report_figures
from howsure.report.report import Report


def notebook_html(report: Report) -> str:
    """Return a report as HTML without styles or scripts; pictures follow the notebook's theme."""
    summary = report.summary
    head = []
    if summary is not None:
        sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in summary.sentences)
        head = [f"<h3>{escape(summary.headline)}</h3><ul>{sentences}</ul>"]
    figures = [
        f"<figure><figcaption><b>{escape(figure.title)}</b><br>{escape(figure.note)}</figcaption>"
        f"{figure.svg()}</figure>"
        for figure in report_figures(report)
    ]
    return "".join([*head, *figures])
