"""The figures of one report, drawn, for a template to place."""

from collections.abc import Collection, Mapping

from markupsafe import Markup

from service.web.charts import CHARTS, figures_of
from service.web.charts.figure import Report
from service.web.charts.html import figure_html
from service.web.charts.renderer import Renderer


class DrawnCharts:
    """Gives figures as HTML, by chart and key; nothing for what the report does not have.

    A template calls it where a figure is to be: ``{{ chart("reliability", "1") }}``.
    """

    def __init__(self, figures: Mapping[tuple[str, str], Markup]) -> None:
        self._figures = figures

    def __call__(self, chart: str, key: str) -> Markup:
        """Return one figure."""
        return self._figures.get((chart, key), Markup())

    def all_of(self, chart: str) -> Markup:
        """Return all figures of a chart, in their order, as of each further set."""
        return Markup().join(found for (name, _), found in self._figures.items() if name == chart)


def draw_charts(
    renderer: Renderer,
    report: Report,
    charts: Collection[str] = tuple(CHARTS),
    *,
    address: str | None = None,
) -> DrawnCharts:
    """Draw the figures of a report, of these charts: some tenths of a second, so in a thread.

    ``address`` is where its charts are files, if they are: `service.web.chart_file`.
    """
    figures = [figure for figure in figures_of(report) if figure.chart in charts]
    pictures = renderer.draw(figures)
    return DrawnCharts(
        {
            (figure.chart, figure.key): figure_html(figure, picture, address)
            for figure, picture in zip(figures, pictures, strict=True)
        }
    )
