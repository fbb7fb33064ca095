"""Charts of the bins: odds ratios, and uncertainty against loss."""

from service.reports.charts import text
from service.reports.charts.figure import Column, Figure, Report, Row, Table, served_events
from service.reports.located import Located

ODDS_RATIO = "odds_ratio"
BETTER, WORSE = "above average", "below average"
ODDS_RATIO_COLUMNS = (
    Column("bin, the most certain first", str),
    Column("odds ratio", text.number),
    Column("probability", text.percent),
    Column("samples", text.count),
)


def odds_ratio_figures(report: Report) -> list[Figure]:
    """Return one figure an event, of the bins that are served and hold a sample."""
    return [_odds_ratio_figure(*served) for served in served_events(report)]


def _odds_ratio_figure(k: str, event: Row, table: Row, at: Located) -> Figure:
    served = event["served"]
    drawn = [(place, row) for place, row in enumerate(table["bins"]) if row["count"]]
    mean = table["scores"].get("eor", {}).get("pooled")
    title = f"{text.event(k)}: odds of being right, by bin of {text.name(served)}"
    if mean is not None:
        title = (
            f"{text.event(k)}: {text.name(served)} moves the odds of being right "
            f"{text.figures(mean, 3)}-fold on average"
        )
    return Figure(
        chart=ODDS_RATIO,
        key=k,
        title=title,
        note=f"Odds of each bin's probability against those of all samples, accuracy "
        f"{text.percent(event['accuracy'])}; whichever is larger is above. The dashes are the "
        "mean, weighted by samples.",
        data={
            "rows": [
                {"_bin": place + 1, "odds_ratio": row["odds_ratio"], "_side": _side(row, event)}
                for place, row in drawn
            ],
            "mean": [] if mean is None else [{"pooled": mean, "_text": text.figures(mean, 3)}],
        },
        table=Table(
            ODDS_RATIO_COLUMNS,
            [
                [
                    place + 1,
                    *(at["bins"][place][name] for name in ("odds_ratio", "probability", "count")),
                ]
                for place, _ in drawn
            ],
        ),
    )


def _side(row: Row, event: Row) -> str:
    return BETTER if row["probability"] >= event["accuracy"] else WORSE


LOSS_SCATTER = "loss_scatter"
OUTCOMES = {"hit": "hit", "top5_hit": "Top-5 hit", "miss": "miss"}
LOSS_SCATTER_COLUMNS = (
    Column("outcome", str),
    Column("samples", text.count),
    Column("drawn", text.count),
    Column("of infinite loss, not drawn", text.count),
)


def scatter_figures(report: Report) -> list[Figure]:
    """Return one figure an event, of the measure that is served."""
    return [
        _scatter_figure(k, event, table["curves"]["scatter"], at["curves"]["scatter"])
        for k, event, table, at in served_events(report)
        if "scatter" in table["curves"]
    ]


def _scatter_figure(k: str, event: Row, scatter: Row, shown: Located) -> Figure:
    points = [
        {"u": u, "l": loss, "o": told}
        for outcome, told in OUTCOMES.items()
        for u, loss in zip(scatter[outcome]["uncertainty"], scatter[outcome]["loss"], strict=True)
    ]
    table = [
        [told, shown[key]["count"], len(scatter[key]["loss"]), shown[key]["infinite"]]
        for key, told in OUTCOMES.items()
    ]
    counts = text.enumerated(
        [f"{text.count(scatter[key]['count'])} of “{told}”" for key, told in OUTCOMES.items()]
    )
    return Figure(
        chart=LOSS_SCATTER,
        key=k,
        title=_scatter_title(k, event),
        note=f"U is {text.name(event['served'])}. At most 200 random samples of each outcome are "
        f"drawn, of {counts}. Both axes have a square-root scale.",
        data={"rows": points},
        table=Table(LOSS_SCATTER_COLUMNS, table),
    )


def _scatter_title(k: str, event: Row) -> str:
    found = event["measures"][event["served"]]["scores"].get("auroc", {})
    area = found.get("pooled") if found.get("mean") is None else found["mean"]
    if area is None:
        return f"{text.event(k)}: loss and uncertainty"
    return (
        f"{text.event(k)}: an error is more uncertain than a hit in "
        f"{text.percent(area)} of pairs (AUROC)"
    )
