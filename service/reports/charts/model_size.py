"""Charts of scores against the size of the models: Ding et al., Figures 4 and 5."""

from collections.abc import Sequence
from itertools import combinations

from howsure.figures.figure import Column, Figure, Table
from howsure.pictures.charts.model_size import SizedScore, by_size
from howsure.report.located import Located, present, value_of
from howsure.report.words import text
from service.reports.comparison.compare import DIFFERENT
from service.reports.comparison.comparisons import Comparisons
from service.reports.comparison.labelled_sets import SCORE_HEADINGS

MODEL_SIZE = "model_size"
SCORES = ("aurc", "auroc", "ece_15", "aece", "mce_15", "amce")


def model_size_figures(report: Comparisons) -> list[Figure]:
    """Return a figure of each score of the first common event, if sizes of models differ."""
    first, *others = report.calibrations
    k = next((k for k in first.events if all(k in one.events for one in others)), "")
    unit, located = _unit(report), Located(report)
    sets = {one["on"] for one in report.comparisons}
    on = DIFFERENT if len(sets) > 1 else sets.pop()
    figures = []
    for score in SCORES:
        rows = []
        for at, one in enumerate(report.calibrations):
            size = located["calibrations"][at]["provenance"]["model"][unit]
            judged = located["comparisons"][max(at - 1, 0)]["judged"][min(at, 1)]
            if size and present(judged["events"][k][score]):
                rows.append((one.reference, size, judged["events"][k][score]))
        if len({value_of(size) for _, size, _ in rows}) > 1:
            figures.append(_figure(rows, k, score, unit, on))
    return figures


def _unit(report: Comparisons) -> str:
    """Return the unit that all sizes are known in: of ensembles that is bytes."""
    models = [one.provenance.model or {} for one in report.calibrations]
    is_counted = all(
        one.get("parameters") and not one.get("members") for one in models if one.get("bytes")
    )
    return "parameters" if is_counted else "bytes"


def _figure(
    rows: Sequence[tuple[str, Located, Located]], k: str, score: str, unit: str, on: str
) -> Figure:
    models = [SizedScore(text.name(name), *map(value_of, located)) for name, *located in rows]
    note = f"{len(rows)} calibrations on {on}, by the {unit} of their models. Differences may be "
    return Figure(
        chart=MODEL_SIZE,
        key=score,
        title=f"{text.event(k)}: {SCORE_HEADINGS[score].lower()} ({score}) {_trend(models)} the "
        "size of the model",
        note=note + ("chance, or those of the sets." if on == DIFFERENT else "chance."),
        picture=by_size(models, unit, score),
        table=Table(
            [
                Column("calibration", text.name),
                Column(unit, text.count),
                Column(score, text.number),
            ],
            rows,
        ),
    )


def _trend(models: Sequence[SizedScore]) -> str:
    """Return how the score changes wherever the size does."""
    pairs = combinations(sorted(models, key=lambda one: one.size), 2)
    steps = [large.score - small.score for small, large in pairs if small.size < large.size]
    if all(step > 0 for step in steps):
        return "rises with"
    return "falls with" if all(step < 0 for step in steps) else "does not follow"
