"""What all specs have in common; read by `make charts` alone, which has Altair."""

from typing import Any

import altair as alt

from service.web.charts.palette import FONT, colour

WIDTH = 356  # of a telephone of 390, less its margins; wider pages set charts side by side
INK, MUTED, GRID = colour("ink"), colour("muted"), colour("grid")


def finished(chart: alt.LayerChart | alt.Chart | alt.FacetChart) -> dict[str, Any]:
    """Return the spec as Vega-Lite, in the style of all."""
    text = {"labelColor": MUTED, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 11}
    sized = chart.properties(
        width=WIDTH, autosize=alt.AutoSizeParams(type="fit-x", contains="padding")
    ).configure(font=FONT, background="transparent", aria=False, padding=4)
    return dict(
        sized.configure_view(stroke=None)
        .configure_axis(
            gridColor=GRID,
            domainColor=MUTED,
            tickColor=MUTED,
            titleFontWeight="normal",
            labelLimit=140,
            labelSeparation=8,
            labelOverlap=True,
            **text,
        )
        .configure_legend(
            orient="bottom", title=None, offset=8, columnPadding=24, symbolStrokeWidth=2, **text
        )
        .configure_text(color=INK, fontSize=11)
        .to_dict()
    )


def rows(name: str = "rows") -> alt.Chart:
    """Return a chart of the figure's rows of that name."""
    return alt.Chart(alt.NamedData(name))


def named_differences(base: alt.Chart) -> tuple[alt.Chart, alt.Chart]:
    """Return the mark of no difference in each row, and above it the row's label."""
    zero = base.mark_tick(color=MUTED, thickness=1.5, size=18, yOffset=6).encode(x=alt.datum(0))
    names = base.mark_text(align="left", baseline="middle", dy=-9, limit=340).encode(
        x=alt.value(0), text="label:N"
    )
    return zero, names
