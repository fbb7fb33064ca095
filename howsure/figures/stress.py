"""Charts of stress sets: scores by intensity and method, and what is left of the promise."""

from collections.abc import Sequence

from howsure.figures.figure import Column, Figure, Table
from howsure.numbers import share
from howsure.pictures.charts.stress import boxes, promise
from howsure.pictures.picture import WIDE, WIDTH
from howsure.report.located import Located, pointer
from howsure.report.report import Report
from howsure.report.stress import Step, Stress, StressSet
from howsure.report.words import text
from howsure.report.words.compared_methods import NAMES
from howsure.report.words.stress import first_broken
from howsure.statistics.shift.methods import MEAN_OF, RAW, SERVED

STRESS_SCORES, STRESS_PROMISE = "stress_scores", "stress_promise"
# Those that are drawn, the third one if no passes were recorded.
FIRST_METHODS = {RAW: "model's softmax", "temperature": "temperature"}
OTHER = "beta_calibration"
SCORES = {"ece_15": "calibration error", "brier": "Brier score", "nll": "negative log-likelihood"}
ACCURACY = "accuracy"


def stress_score_figures(report: Report) -> list[Figure]:
    """Return a figure for each score, and one of the accuracy, of sets with an intensity."""
    stress = Stress.of(report)
    if not stress.intensities:
        return []
    return [_scores(stress, score) for score in (*SCORES, ACCURACY)]


def _scores(stress: Stress, score: str) -> Figure:
    drawn = [one for one in stress.sets if one.further.intensity is not None]
    methods = _methods(drawn, stress.k)
    by_method = {
        name: [
            [
                value
                for one in drawn
                if one.further.intensity == size
                and (value := _value(one, stress.k, score, method)) is not None
            ]
            for size in stress.intensities
        ]
        for method, name in methods.items()
    }
    columns = [text.number(size) for size in stress.intensities]
    is_share = score in ("ece_15", ACCURACY)
    name = SCORES.get(score, score)
    numbers = text.percent if is_share else text.number
    pictures = [
        boxes(columns, by_method, name, is_share=is_share, width=width) for width in (WIDTH, WIDE)
    ]
    return Figure(
        chart=STRESS_SCORES,
        key=score,
        title=f"{text.event(stress.k)}: {name} by intensity",
        note=f"{len(drawn)} sets. Each box: the kinds of change at one intensity, from the lower "
        "to the upper quartile, with the median; lines from the least to the largest.",
        picture=pictures[0],
        wide=pictures[1],
        table=Table(
            (
                Column("set", str),
                Column("type", str),
                Column("intensity", text.number),
                *(Column(method, numbers) for method in methods.values()),
            ),
            [
                [
                    text.name(one.further.name),
                    text.name(one.kind),
                    one.further.intensity,
                    *(_located(one, stress.k, score, method) for method in methods),
                ]
                for one in drawn
            ],
        ),
    )


def _methods(drawn: Sequence[StressSet], k: str) -> dict[str, str]:
    """Return the methods that are drawn, the served one last; a mean of passes if there is one."""
    names = (name for one in drawn for name in one.further.events[k].methods)
    other = next((name for name in names if name.startswith(MEAN_OF)), OTHER)
    return {**FIRST_METHODS, other: NAMES[other].removeprefix("the "), SERVED: SERVED}


def _value(one: StressSet, k: str, score: str, method: str) -> float | None:
    scored = one.further.events[k].methods.get(method)
    return None if scored is None else scored.scores.get(score)


def _located(one: StressSet, k: str, score: str, method: str) -> Located:
    event = Located(one.further, pointer("evaluations", one.at))["events"][k]
    return event["methods"][method]["scores"][score]


PROMISE_COLUMNS = (
    Column("intensity", text.number),
    Column("accepted", text.percent),
    Column("wrong among them", text.percent),
)


def stress_promise_figures(report: Report) -> list[Figure]:
    """Return a figure for each kind of change, by the first tested threshold."""
    stress = Stress.of(report)
    if stress.max_risk is None:
        return []
    most = max(stress.intensities, default=0.0)
    return [
        _promise(at, kind, steps, (stress.k, stress.max_risk, most))
        for at, (kind, steps) in enumerate(stress.steps.items())
    ]


def _promise(at: int, kind: str, steps: Sequence[Step], of_all: tuple[str, float, float]) -> Figure:
    k, max_risk, most = of_all
    wrong = [(one.intensity, one.accepted.risk or 0.0) for one in steps]
    broken = [point for point, one in zip(wrong, steps, strict=True) if one.is_broken]
    first = first_broken(list(steps))
    ending = "not clearly broken"
    if first is not None:
        ending = f"broken from intensity {text.number(first)}"
    elif broken:
        ending = "broken at some intensities"
    return Figure(
        chart=STRESS_PROMISE,
        key=str(at),
        title=f"{text.name(kind)}: the promise is {ending}",
        note=f"Answers accepted for “at most {share(max_risk)} wrong”: grey the share accepted, "
        "blue what of it is wrong, red squares where clearly more than promised.",
        picture=promise(
            [(one.intensity, one.accepted.coverage) for one in steps],
            wrong,
            broken,
            (most, max_risk),
        ),
        table=Table(
            PROMISE_COLUMNS,
            [[one.intensity, *_accepted(one, k)] for one in steps],
        ),
    )


def _accepted(step: Step, k: str) -> list[Located]:
    accepted = Located([step.accepted], pointer("evaluations", step.at, "events", k, "accepted"))
    return [accepted[0]["coverage"], accepted[0]["risk"]]
