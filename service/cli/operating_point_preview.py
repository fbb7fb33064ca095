"""What a preview of an operating point prints: the threshold, what is known, and the effect."""

import shlex
from collections.abc import Mapping
from itertools import chain

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from howsure.client import Calibration, OperatingPointPreview
from howsure.client.operating_points import Consequences, ExpectedVolume
from howsure.numbers import amount, confidence, count, missing_labels, percent, share
from howsure.statistics.measures.scale import scale_of
from service.cli.console import add_row, print_table, say, table_of

IMPORTED = "Its effect is unknown: this calibration was imported and stores no samples."


def print_preview(
    calibration: Calibration, found: OperatingPointPreview, choice: Mapping[str, float]
) -> None:
    """Print the outcome of a choice, which has the names of the options, and how to activate it."""
    if found.threshold is None:
        max_risk = found.max_risk or 0.0
        say(
            f"{calibration.reference}: no threshold passes the test for an error rate of at most "
            f"{share(max_risk)}.\n"
            + missing_labels({max_risk: found.labels_missing}, out_of_reach=found.out_of_reach)
        )
        return
    say(f"{calibration.reference}: accepts answers with {accepted(found.measure, found.threshold)}")
    if found.consequences is None:
        say(IMPORTED)
    else:
        say(_assurance(found, found.consequences))
        print_effects(calibration, found.consequences)
    if found.expected is not None:
        say(_expected(found, found.expected))
    options = [w for name, value in choice.items() for w in (option(name), f"{value!r}")]
    words = shlex.join(["howsure", "operating-point", calibration.reference, *options])
    say(f"Nothing was stored. To activate it: {words} --activate --author NAME --reason TEXT")


def _assurance(found: OperatingPointPreview, seen: Consequences) -> str:
    """Return what is known of the error rate."""
    if found.assurance is not None:
        about = "about " if not found.certified or found.design else ""
        return (
            f"{found.assurance.capitalize()}: at most {share(found.max_risk or 0.0)} of accepted "
            f"answers are wrong, with {about}{confidence(found.delta)} confidence, on data like "
            "the calibration set."
        )
    said = (
        "Not tested: the error rates are observed. Only a threshold chosen by --max-risk is tested"
    )
    if found.max_risk is not None:
        return f"{said}; --max-risk {found.max_risk!r} accepts as many answers."
    return f"{said}{'; no error rate passes with as many answers' * (seen.n_accepted > 0)}."


def _expected(found: OperatingPointPreview, of: ExpectedVolume) -> str:
    seen, (lower, upper) = found.consequences, of.errors_interval
    # A choice by error rate is made by the errors of the calibration set.
    is_judged = found.assurance is not None and seen is not None and seen.evaluation is not None
    return (
        f"Of {count(of.volume)} answers: {amount(of.accepted)} accepted, about "
        f"{amount(of.errors)} of them wrong ({amount(lower)} to {amount(upper)}), "
        f"{amount(of.reviewed)} to review{', by the evaluation set' * is_judged}."
    )


def print_effects(calibration: Calibration, seen: Consequences) -> None:
    """Print a row for each labelled set."""
    level = share(calibration.resource["config"]["interval"]["level"])
    table = table_of("", ("set",), ("samples", "accepted", "wrong", f"{level} interval"))
    sets = [("calibration set", seen), ("evaluation set", seen.evaluation), *seen.further.items()]
    for name, found in sets:
        if found is not None:
            add_row(
                table,
                name,
                count(found.n_samples),
                f"{count(found.n_accepted)} ({percent(found.coverage)})",
                f"{count(found.n_errors)} ({percent(found.risk)})",
                " to ".join(map(percent, found.risk_interval or ())),
            )
    print_table(table)
    if seen.by_class:
        print_table(_errors_by_class(calibration, seen))
    if seen.weighted:
        say("Percentages are weighted; counts are numbers of samples.", style="dim")


def _errors_by_class(calibration: Calibration, seen: Consequences) -> Table:
    """Return the errors among accepted calibration samples, by class."""
    table = Table("class", box=SIMPLE_HEAD)
    for column in ("answers that name it", "of these wrong", "samples of it", "of these missed"):
        table.add_column(column, justify="right")
    for one in seen.by_class:
        shares = (
            (count(kind.n_samples), percent(kind.share)) for kind in (one.named, one.labelled)
        )
        add_row(table, calibration.classes[one.index], *chain.from_iterable(shares))
    return table


def accepted(measure: str, threshold: float | None) -> str:
    """Return what a threshold accepts."""
    scale = scale_of(measure)
    return f"{scale.within} {exact(threshold)}" + f" ({measure})" * (measure != scale.name)


def exact(threshold: float | None) -> str:
    """Return a threshold, which is a float32, with the digits that --threshold needs."""
    return str(np.float32(threshold))


def option(name: str) -> str:
    """Return the name of an option as it is typed."""
    return f"--{name.replace('_', '-')}"
