"""The summary of a report: its status, and sentences that follow from its numbers."""

import copy
import json
from typing import Any

import pytest

from service.http.openapi.examples import FOLDER
from service.reports.summary import summarise

EXAMPLE = json.loads((FOLDER / "report.json").read_text())
EVENT = "events.1"
SERVED = f"{EVENT}.measures.{EXAMPLE['events']['1']['served']}"
RAW = f"{EVENT}.baselines.raw_softmax"
RISK = f"{EVENT}.figures.risk"
ERROR = f"{EVENT}.figures.calibration_error.served"
DATA = "provenance.data"
Changes = dict[str, Any]


def changed(changes: Changes) -> dict[str, Any]:
    """Return the example with other values at these places."""
    report = copy.deepcopy(EXAMPLE)
    for place, value in changes.items():
        *parts, last = place.split(".")
        part = report
        for name in parts:
            part = part[name]
        part[last] = value
    return report


def unproven(*missing: int | None, out_of_reach: tuple[bool, bool] = (False, False)) -> Changes:
    """No requested error rate passes its test; so many labels are missing to prove each."""
    nothing = {"threshold": None, "coverage": None, "n_accepted": 0, "n_errors": 0}
    selective = [
        {"target": {"max_risk": rate, "delta": 0.05}, "labels_missing": n, "out_of_reach": far}
        | nothing
        for rate, n, far in zip((0.05, 0.01), missing, out_of_reach, strict=True)
    ]
    return {f"{SERVED}.selective": selective, RISK: None}


def counts(n_errors: int, n_accepted: int = 500) -> Changes:
    coverage = n_accepted / 600
    numbers = {"n_samples": 600, "n_accepted": n_accepted, "n_errors": n_errors}
    return numbers | {"coverage": coverage, "effective": None}


def promised(n_errors: int, n_accepted: int = 500, max_risk: float = 0.05) -> Changes:
    return {"target": {"max_risk": max_risk, "delta": 0.05}, **counts(n_errors, n_accepted)}


def active(chosen_by: dict[str, float], evaluation: Changes | None = None) -> Changes:
    """An operating point is active that accepts 527 of 600 answers, 3 of them wrong."""
    consequences = counts(3, 527) | {"evaluation": evaluation}
    point = {"name": "night-shift", "threshold": 0.1, "chosen_by": chosen_by}
    return {"operating_point": point | {"consequences": consequences}}


def chance(raw: Changes, *, served: bool | None = True, after: float = 0.01) -> Changes:
    """Calibration errors on the evaluation set, with the test of chance."""
    band = None if served is None else {"consistent": served}
    return {
        f"{RAW}.evaluation_ece_band": {"observed": 0.03} | raw,
        f"{RAW}.difference": {},
        f"{SERVED}.evaluation_ece_band": band,
        f"{ERROR}.mean": after,
    }


def loss(mean: float, standard_error: float, phase: str = "evaluation") -> Changes:
    """The loss of the softmax minus that of the served probabilities."""
    nll = {"mean": mean, "standard_error": standard_error, "pairs": 600}
    return {f"{RAW}.difference": {"evaluation": {}, phase: {"nll": nll}}}


def further(name: str, *, shifted: bool = True, outcome: str = "shifted", **event: Any) -> Changes:
    about = {"accuracy": 0.5, "scores": {"ece_15": 0.4}, "accepted": [], "disproves": False}
    return {"name": name, "shifted": shifted, "outcome": outcome, "events": {"1": about | event}}


def sets(*evaluations: Changes) -> Changes:
    return {"evaluations": list(evaluations)}


WARNING = {"code": "labels-shifted", "level": "warning"}
CHANCE, NO_CHANCE = {"consistent": True, "upper": 0.04}, {"consistent": False}
TESTED = {"max_risk": 0.01, "delta": 0.05}
# Every case with its status; the golden text has the sentences.
CASES: dict[str, tuple[str, Changes]] = {
    "a certified error rate": ("fit", {}),
    "no evaluation set": ("fit", {f"{DATA}.evaluation_samples": None}),
    "weights": ("fit", {f"{DATA}.design": ["weight"]}),
    "groups and weights": ("fit", {f"{DATA}.design": ["group", "weight"]}),
    "all answers": ("fit", {f"{RISK}.coverage": 1.0}),
    "no rate is proven": ("unfit", unproven(None, None)),
    "1,234 labels are missing": ("unfit", unproven(1234, None)),
    "96 labels are missing": ("unfit", unproven(1234, 96)),
    "out of reach": ("unfit", unproven(None, None, out_of_reach=(True, True))),
    "one rate is out of reach": ("unfit", unproven(None, None, out_of_reach=(False, True))),
    "mostly wrong": ("unfit", unproven(None, None) | {f"{EVENT}.accuracy": 0.25}),
    # At most 5 % was promised; 4 % or 6.7 % are of another class than the first.
    "always one class, 4 % wrong": ("fit", {f"{DATA}.class_counts": [576, *[0] * 8, 24]}),
    "always one class, 6.7 % wrong": ("fit", {f"{DATA}.class_counts": [560, *[0] * 8, 40]}),
    "one class of pairs": ("fit", {f"{DATA}.class_counts": [576, 24], f"{DATA}.kind": "pairs"}),
    "one class of weighted samples": (
        "fit",
        {f"{DATA}.class_counts": [576, *[0] * 8, 24], f"{DATA}.design": ["weight"]},
    ),
    "a notice": ("fit", {"findings": [WARNING | {"level": "notice"}]}),
    "a warning": ("warned", {"findings": [WARNING]}),
    "two warnings": ("warned", {"findings": [WARNING, WARNING]}),
    "calibrated, by chance": ("fit", chance(CHANCE)),
    "no more than chance is left": ("fit", chance(NO_CHANCE)),
    "more than chance is left": ("fit", chance(NO_CHANCE, served=False)),
    "a larger error, by chance": ("fit", chance(NO_CHANCE, after=0.5)),
    "a larger error": ("fit", chance(NO_CHANCE, served=False, after=0.5)),
    "no test of chance": ("fit", chance(NO_CHANCE, served=None)),
    "just enough samples to tell": ("fit", chance(CHANCE | {"upper": 0.05})),
    "too few samples to tell": ("fit", chance(CHANCE | {"upper": 0.051})),
    "a clearly smaller loss": ("fit", loss(0.2, 0.05) | {f"{ERROR}.mean": 0.5}),
    "a smaller loss by chance": ("fit", loss(0.01, 0.05) | {f"{ERROR}.mean": 0.5}),
    "a clearly larger loss": ("fit", loss(-0.2, 0.05) | {f"{ERROR}.mean": 0.5}),
    **{
        f"by chance calibrated, loss ± {error}, {phase}": (
            "fit",
            chance(CHANCE) | loss(0.004, error, phase),
        )
        for error in (0.001, 0.003)
        for phase in ("evaluation", "cross_validation")
    },
    "cross-validated": ("fit", {f"{EVENT}.figures.set": "calibration", f"{ERROR}.folds": 10}),
    "20 of 500 evaluated are wrong": ("fit", {f"{RISK}.evaluation": counts(20)}),
    "30 of 500 evaluated are wrong": ("fit", {f"{RISK}.evaluation": counts(30)}),
    "40 of 500 evaluated are wrong": ("disproved", {f"{RISK}.evaluation": counts(40)}),
    "an active operating point": ("fit", active(TESTED, counts(10, 537))),
    "a disproved operating point": ("disproved", active(TESTED, counts(30, 537))),
    "an untested operating point": ("unknown", active({"coverage": 0.87})),
    "further sets disprove it": (
        "shifted",
        sets(
            further("dusk", disproves=True),
            further("noisy\u202e", disproves=True, accuracy=0.025, accepted=[promised(480, 480)]),
            further("other camera"),
        ),
    ),
    "a broken promise comes first": (
        "shifted",
        sets(
            further("stated", disproves=True, accuracy=0.94, stated=0.99),
            further("broken", disproves=True, accuracy=0.945, accepted=[promised(60)]),
        ),
    ),
    **{
        f"disproved: {reason}": ("shifted", sets(further("later", disproves=True, **event)))
        for reason, event in {
            "less right than stated": {"accuracy": 0.946, "stated": 0.989},
            "nothing is stated": {"accuracy": 0.946},
            "far more errors": {"accuracy": 0.9, "stated": 0.95},
            "a promise": {"accuracy": 0.946, "stated": 0.989, "accepted": [promised(60)]},
        }.items()
    },
    "more errors than promised, by chance": (
        "fit",
        sets(further("december", shifted=False, accepted=[promised(32)])),
    ),
    "as many errors as promised": (
        "fit",
        sets(further("december", shifted=False, accepted=[promised(25)])),
    ),
    "more than another rate": (
        "fit",
        sets(further("december", shifted=False, accepted=[promised(32, max_risk=0.01)])),
    ),
    **{
        f"a further set is {verdict}": (
            "fit",
            sets(
                further(
                    "later",
                    shifted=outcome != "alike",
                    outcome=outcome,
                    accuracy=0.55,
                    stated=0.653,
                    verdict=verdict,
                )
            ),
        )
        for verdict, outcome in {
            "worse than stated": "worse",
            "better than stated": "better",
            "unclear": "alike",
            "no shift seen": "alike",
        }.items()
    },
    "equal shares are no reason": (
        "fit",
        sets(
            further(
                "later",
                accuracy=0.63,
                stated=0.629,
                scores={"ece_15": 0.051},
                verdict="not as stated",
            )
        ),
    ),
    "a further set differs": ("fit", sets(further("after\u202e the move"))),
}


def test_the_example_holds_its_own_summary() -> None:
    assert summarise(EXAMPLE) == EXAMPLE["summary"]


@pytest.mark.parametrize("case", CASES)
def test_a_status_follows_from_the_numbers(case: str) -> None:
    status, changes = CASES[case]
    assert summarise(changed(changes))["status"] == status


def test_sentences_follow_from_the_numbers(golden) -> None:
    """Of each case those that the example does not have; ``…`` stands for those it has."""
    known = {EXAMPLE["summary"]["headline"], *EXAMPLE["summary"]["sentences"]}
    texts = []
    for case, (_, changes) in CASES.items():
        summary = summarise(changed(changes))
        lines = [summary["headline"], *(f"- {sentence}" for sentence in summary["sentences"])]
        new = ["…" if line.removeprefix("- ") in known else line for line in lines]
        kept = [line for at, line in enumerate(new) if line != "…" or new[at - 1 : at] != ["…"]]
        texts.append("\n".join([f"== {case}: {summary['status']}, {len(lines)} lines", *kept]))
    whole = [EXAMPLE["summary"]["headline"], *EXAMPLE["summary"]["sentences"]]
    golden("summaries.txt", "\n".join([*whole, *texts]))
