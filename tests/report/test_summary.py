"""The summary of a report: its status, and sentences that follow from its numbers."""

import json
from typing import Any

from bins_documents import changed, put
from msgspec.structs import asdict
from report_documents import typed

from howsure.report.words.summary import summarise
from service.http.openapi.examples import FOLDER

EXAMPLE = json.loads((FOLDER / "report.json").read_text())
EVENT = "events.1"
SERVED = f"{EVENT}.measures.{EXAMPLE['events']['1']['served']}"
RAW = f"{EVENT}.baselines.raw_softmax"
RISK = f"{EVENT}.figures.risk"
ERROR = f"{EVENT}.figures.calibration_error.served"
DATA = "provenance.data"
Changes = dict[str, Any]


def unproven(*missing: int | None, out_of_reach: tuple[bool, bool] = (False, False)) -> Changes:
    """No requested error rate passes its test; so many labels are missing to prove each."""
    nothing = {"threshold": None, "coverage": None, "n_accepted": 0, "n_errors": 0}
    nothing |= {"evaluation": None, "effective": None}
    selective = [
        {"target": {"max_risk": rate, "delta": 0.05}, "labels_missing": n, "out_of_reach": far}
        | nothing
        for rate, n, far in zip((0.05, 0.01), missing, out_of_reach, strict=True)
    ]
    return {f"{SERVED}.selective": selective, RISK: None}


# What sentences do not read.
UNREAD = (0.0, 0.0)


def counts(n_errors: int, n_accepted: int = 500) -> Changes:
    coverage = n_accepted / 600
    numbers = {"n_samples": 600, "n_accepted": n_accepted, "n_errors": n_errors}
    return numbers | {"coverage": coverage, "effective": None}


def effect(n_errors: int, n_accepted: int) -> Changes:
    intervals = dict.fromkeys(("coverage_interval", "risk_interval", "errors_interval"), UNREAD)
    return counts(n_errors, n_accepted) | intervals | {"risk": 0.0, "errors": 0.0, "by_class": []}


def evaluated(n_errors: int) -> Changes:
    return counts(n_errors) | {"value": 0.0, "weighted": False, "interval": UNREAD}


def promised(n_errors: int, n_accepted: int = 500, max_risk: float = 0.05) -> Changes:
    rate = {"threshold": 0.1, "risk": 0.0, "risk_interval": UNREAD}
    target = {"max_risk": max_risk, "delta": 0.05}
    return {"target": target, **counts(n_errors, n_accepted), **rate}


def active(chosen_by: dict[str, float], evaluation: Changes | None = None) -> Changes:
    """An operating point is active that accepts 527 of 600 answers, 3 of them wrong."""
    consequences = effect(3, 527) | {"evaluation": evaluation}
    point = {"name": "night-shift", "threshold": 0.1, "chosen_by": chosen_by}
    point |= {"author": "Ann", "reason": "agreed", "created_at": None}
    return {"operating_point": point | {"consequences": consequences}}


BAND = {"score": "ece_15", "observed": 0.03, "median": 0.0, "upper": 0.0, "resamples": 999}
BAND |= {"refitted": False, "consistent": True}  # which follows from the others


def chance(raw: Changes, *, served: bool | None = True, after: float = 0.01) -> Changes:
    """Calibration errors on the evaluation set, with the test of chance."""
    band = None if served is None else BAND | {"upper": float(served)}
    before = {f"{RAW}.evaluation_ece_band": BAND | raw, f"{RAW}.difference": {}}
    return before | {f"{SERVED}.evaluation_ece_band": band, f"{ERROR}.mean": after}


def loss(mean: float, standard_error: float, phase: str = "evaluation") -> Changes:
    """The loss of the softmax minus that of the served probabilities."""
    nll = {"mean": mean, "standard_error": standard_error, "pairs": 600}
    return {f"{RAW}.difference": {"evaluation": {}, phase: {"nll": nll}}}


def further(
    name: str, *, outcome: str = "shifted", shifted: bool | None = None, **event: Any
) -> Changes:
    is_shifted = outcome != "alike" if shifted is None else shifted
    about = {"accuracy": 0.5, "scores": {"ece_15": 0.4}, "accepted": [], "disproves": False}
    about |= {"served": "margin", "shifted": is_shifted, "discarded": {}, "verdict": ""}
    about |= dict.fromkeys(("population", "stated", "unpromised"))
    further_set = {"labelled": True, "samples": 600, "sha256": "", "sentence": "", "findings": []}
    further_set |= {"confidence": {"edges": [], "counts": [], "calibration_counts": []}}
    further_set |= dict.fromkeys(("finished_at", "entropy", "by_confidence"))
    return further_set | {
        "name": name,
        "shifted": is_shifted,
        "outcome": outcome,
        "above_confidence": [],
        "events": {"1": about | event},
    }


def sets(*evaluations: Changes) -> Changes:
    return {"evaluations": list(evaluations)}


WARNING = {"code": "labels-shifted", "level": "warning", "message": "", "docs": ""}
CHANCE, NO_CHANCE = {"upper": 0.04}, {"upper": 0.02}
TESTED = {"max_risk": 0.01, "delta": 0.05}
ONE_CLASS = [576, *[0] * 8, 24]
EQUAL = "not as stated"
# The golden text has the status and the sentences of each.
CASES: dict[str, Changes] = {
    "a certified error rate": {},
    "no evaluation set": {f"{DATA}.evaluation_samples": None},
    "weights": {f"{DATA}.design": ["weight"]},
    "groups and weights": {f"{DATA}.design": ["group", "weight"]},
    "all answers": {f"{RISK}.coverage": 1.0},
    "no rate is proven": unproven(None, None),
    "1,234 labels are missing": unproven(1234, None),
    "96 labels are missing": unproven(1234, 96),
    "out of reach": unproven(None, None, out_of_reach=(True, True)),
    "one rate is out of reach": unproven(None, None, out_of_reach=(False, True)),
    "mostly wrong": unproven(None, None) | {f"{EVENT}.accuracy": 0.25},
    # At most 5 % was promised; 4 % or 6.7 % are of another class than the first.
    "always one class, 4 % wrong": {f"{DATA}.class_counts": ONE_CLASS},
    "always one class, 6.7 % wrong": {f"{DATA}.class_counts": [560, *[0] * 8, 40]},
    "one class of pairs": {f"{DATA}.class_counts": [576, 24], f"{DATA}.kind": "pairs"},
    "one class of weighted samples": {
        f"{DATA}.class_counts": ONE_CLASS,
        f"{DATA}.design": ["weight"],
    },
    "a notice": {"findings": [WARNING | {"level": "notice"}]},
    "a warning": {"findings": [WARNING]},
    "two warnings": {"findings": [WARNING, WARNING]},
    "calibrated, by chance": chance(CHANCE),
    "no more than chance is left": chance(NO_CHANCE),
    "more than chance is left": chance(NO_CHANCE, served=False),
    "a larger error, by chance": chance(NO_CHANCE, after=0.5),
    "a larger error": chance(NO_CHANCE, served=False, after=0.5),
    "no test of chance": chance(NO_CHANCE, served=None),
    "just enough samples to tell": chance(CHANCE | {"upper": 0.05}),
    "too few samples to tell": chance(CHANCE | {"upper": 0.051}),
    "a clearly smaller loss": loss(0.2, 0.05) | {f"{ERROR}.mean": 0.5},
    "a smaller loss by chance": loss(0.01, 0.05) | {f"{ERROR}.mean": 0.5},
    "a clearly larger loss": loss(-0.2, 0.05) | {f"{ERROR}.mean": 0.5},
    **{
        f"by chance calibrated, loss ± {error}, {phase}": chance(CHANCE) | loss(0.004, error, phase)
        for error in (0.001, 0.003)
        for phase in ("evaluation", "cross_validation")
    },
    "cross-validated": {f"{EVENT}.figures.set": "calibration", f"{ERROR}.folds": 10},
    **{
        f"{n} of 500 evaluated are wrong": {f"{RISK}.evaluation": evaluated(n)}
        for n in (20, 30, 40)
    },
    "a baseline is far better": {f"{EVENT}.verdict.outdone": True},
    "an active operating point": active(TESTED, effect(10, 537)),
    "a disproved operating point": active(TESTED, effect(30, 537)),
    "an untested operating point": active({"coverage": 0.87}),
    "further sets disprove it": sets(
        further("dusk", disproves=True),
        further("noisy\u202e", disproves=True, accuracy=0.025, accepted=[promised(480, 480)]),
        further("other camera"),
    ),
    "a broken promise comes first": sets(
        further("stated", disproves=True, accuracy=0.94, stated=0.99),
        further("broken", disproves=True, accuracy=0.945, accepted=[promised(60)]),
    ),
    **{
        f"disproved: {reason}": sets(further("later", disproves=True, **event))
        for reason, event in {
            "less right than stated": {"accuracy": 0.946, "stated": 0.989},
            "nothing is stated": {"accuracy": 0.946},
            "far more errors": {"accuracy": 0.9, "stated": 0.95},
            "a promise": {"accuracy": 0.946, "stated": 0.989, "accepted": [promised(60)]},
        }.items()
    },
    **{
        name: sets(further("december", shifted=False, accepted=[accepted]))
        for name, accepted in {
            "more errors than promised, by chance": promised(32),
            "as many errors as promised": promised(25),
            "more than another rate": promised(32, max_risk=0.01),
        }.items()
    },
    **{
        f"a further set is {verdict}": sets(
            further("later", outcome=outcome, accuracy=0.55, stated=0.653, verdict=verdict)
        )
        for verdict, outcome in {
            "worse than stated": "worse",
            "better than stated": "better",
            "unclear": "alike",
            "no shift seen": "alike",
        }.items()
    },
    "equal shares are no reason": sets(
        further("later", accuracy=0.63, stated=0.629, scores={"ece_15": 0.051}, verdict=EQUAL)
    ),
    "a further set differs": sets(further("after\u202e the move")),
}


def test_the_example_holds_its_own_summary() -> None:
    assert asdict(summarise(typed(EXAMPLE))) == EXAMPLE["summary"]


def test_the_status_and_sentences_follow_from_the_numbers(golden) -> None:
    """Of each case those that the example does not have; ``…`` stands for those it has."""
    known = {EXAMPLE["summary"]["headline"], *EXAMPLE["summary"]["sentences"]}
    texts = []
    for case, changes in CASES.items():
        summary = summarise(typed(changed(EXAMPLE, put(changes), sign=False)))
        lines = [summary.headline, *(f"- {sentence}" for sentence in summary.sentences)]
        new = ["…" if line.removeprefix("- ") in known else line for line in lines]
        kept = [line for at, line in enumerate(new) if line != "…" or new[at - 1 : at] != ["…"]]
        texts.append("\n".join([f"== {case}: {summary.status}, {len(lines)} lines", *kept]))
    whole = [EXAMPLE["summary"]["headline"], *EXAMPLE["summary"]["sentences"]]
    golden("summaries.txt", "\n".join([*whole, *texts]))
