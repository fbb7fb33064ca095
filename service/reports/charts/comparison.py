"""Charts of calibrations against the first of them."""

from howsure.figures.figure import Column, Figure, Row, Table
from howsure.pictures.charts.differences import Difference, differences
from howsure.pictures.elements import Shape
from howsure.pictures.palette import Ink
from howsure.report.located import Located, pointer
from howsure.report.words import text
from howsure.report.words.verdict import TIES, compared_verdict
from howsure.statistics.comparison import PairedDifference
from service.reports.comparison.comparisons import Comparisons

COMPARISON = "comparison"
# Beside "better" and "worse".
MAYBE_CHANCE = "may be chance"
NOT_JUDGED = "not judged"
COMPARISON_LOOKS: dict[str, tuple[Shape, Ink]] = {
    "better": ("triangle", "blue"),
    MAYBE_CHANCE: ("circle", "grey"),
    "worse": ("down", "orange"),
    NOT_JUDGED: ("square", "grey"),
}
COMPARED_SCORES = {"nll": "NLL", "brier": "Brier", "accuracy": "accuracy"}
COMPARISON_COLUMNS = (
    Column("score", str, "score"),
    Column("difference", text.signed, "mean"),
    Column("± standard error", text.number, "standard_error"),
    Column("pairs", text.count, "pairs"),
    Column("", str, "verdict"),
)


def comparison_figures(report: Comparisons) -> list[Figure]:
    """Return one figure for each calibration that is compared with the first."""
    drawn = []
    for at, comparison in enumerate(report.comparisons):
        rows = _compared_scores(at, comparison)
        if rows:
            drawn.append(_comparison_figure(at, comparison, rows))
    return drawn


def _comparison_figure(at: int, comparison: Row, rows: list[Row]) -> Figure:
    first, second = text.name(comparison["first"]), text.name(comparison["second"])
    clear = [row["verdict"] for row in rows if row["verdict"] not in (MAYBE_CHANCE, NOT_JUDGED)]
    verdicts = set(clear)
    title = f"{second} and {first} do not differ clearly"
    undecided = {event["undecided"] for event in comparison["events"].values()}
    if "warnings" in undecided:
        title = f"{second} and {first} are not compared, because of warnings"
    elif "doubtful-set" in undecided:
        title = f"{second} and {first} are not compared, because the set looks wrong"
    elif undecided == {"too-rare"} and not verdicts:
        title = f"{second} and {first} are not compared, because errors are too few"
    elif undecided == {"accuracy"} and len(verdicts) == 1:
        title = (
            f"{second} is right {'more' if verdicts == {'better'} else 'less'} often than {first}"
        )
    elif len(verdicts) == 1:
        title = f"{second} is {verdicts.pop()} than {first} in {len(clear)} of {len(rows)} scores"
    elif verdicts:
        title = f"{second} is better than {first} in some scores and worse in others"
    return Figure(
        chart=COMPARISON,
        key=str(at),
        title=title,
        note=f"{second} minus {first}, on {comparison['on']}. A difference whose bar "
        "includes 0 may be chance.",
        picture=differences(
            [
                Difference(
                    f"{row['score']}: {text.signed(row['mean'])} ± "
                    f"{text.figures(row['standard_error'], 2)}",
                    row["mean"] / row["margin"],
                    1.0,
                    row["verdict"],
                )
                for row in rows
            ],
            COMPARISON_LOOKS,
            "difference, in the least that is clear",
        ),
        table=Table.of(
            COMPARISON_COLUMNS,
            [({name: row[name] for name in ("score", "verdict")}, row["at"]) for row in rows],
        ),
    )


def _compared_scores(at: int, comparison: Row) -> list[Row]:
    located = Located(comparison["events"], pointer("comparisons", at, "events"))
    return [
        {
            **difference,
            "margin": PairedDifference(**difference).margin,
            "at": located[k]["differences"][score],
            "score": f"{text.event(k)}, {name}",
            "verdict": _comparison_verdict(event, score),
        }
        for k, event in comparison["events"].items()
        for score, name in COMPARED_SCORES.items()
        if (difference := event["differences"].get(score, {})).get("standard_error")
    ]


def _comparison_verdict(event: Row, score: str) -> str:
    outcome = compared_verdict(event, score)
    if outcome is None:
        return NOT_JUDGED
    return MAYBE_CHANCE if outcome in TIES else outcome
