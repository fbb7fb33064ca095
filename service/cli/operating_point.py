"""``howsure operating-point``: up to which uncertainty answers are accepted."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from howsure.client import Calibration, Client, OperatingPoint
from howsure.client.operating_point_methods import DELTA, NAME
from howsure.numbers import confidence, share
from howsure.statistics.measures.scale import scale_of
from service.cli.connection import service_client
from service.cli.console import (
    STYLES,
    UrlOption,
    add_row,
    optional,
    print_table,
    say,
    with_options,
)
from service.cli.failure import CommandFailed
from service.cli.operating_point_preview import (
    accepted,
    exact,
    option,
    print_effects,
    print_preview,
)

CHOICES = ("max_risk", "coverage", "threshold")
CHOICE = "--max-risk, --coverage or --threshold"
# The options that each use takes, beside --url.
TAKEN = {
    f"a preview ({CHOICE})": (*CHOICES, "delta", "volume"),
    "--activate": (*CHOICES, "delta", "name", "author", "reason"),
    "--withdraw": ("author", "reason"),
}
PREVIEW, ACTIVATE, WITHDRAW = TAKEN
# \b keeps the lines of a paragraph as they are.
EXAMPLES = """\
Examples:

\b
howsure operating-point digits
howsure operating-point digits --max-risk 0.02 --volume 10000
howsure operating-point digits --max-risk 0.02 --activate \\
    --author "A. Reviewer" --reason "agreed with the clinic"
howsure operating-point digits --withdraw --author Ada --reason "new camera"
"""


OPTIONS = {
    "max_risk": optional(
        "RATE",
        "Accept as many answers as keep this error rate, which is tested; 0.02 is 2 %.",
        float,
    ),
    "coverage": optional(
        "SHARE", "Instead: accept this share of the calibration set; 0.8 is 80 %.", float
    ),
    "threshold": optional(
        "NUMBER",
        "Instead: accept up to this uncertainty of Top-1; of pairs, from this score on.",
        float,
    ),
    "delta": optional(
        "SHARE", f"Probability that the tested error rate fails; default: {DELTA:g}.", float
    ),
    "volume": optional("N", "Preview the expected counts for this number of answers.", int),
    "activate": Annotated[
        bool | None, typer.Option("--activate", help="Activate the choice, instead of a preview.")
    ],
    "withdraw": Annotated[
        bool | None, typer.Option("--withdraw", help="Deactivate the active operating point.")
    ],
    "name": optional("NAME", f"Its name in `abstain` of answers; default: {NAME}."),
    "author": optional("NAME", "Who decides."),
    "reason": optional("TEXT", "Why, on one line."),
}


@with_options(OPTIONS)
def operating_point(
    calibration: Annotated[str, typer.Argument(help="An id, a name, or name@version.")],
    *,
    url: UrlOption = None,
    **options: Any,  # noqa: ANN401 - one type each
) -> None:
    """Preview, activate or withdraw the threshold up to which answers are accepted.

    Without options, show the active operating point and all decisions.
    """
    options = {name: value for name, value in options.items() if value is not None}
    use = _use(
        options, activate=options.pop("activate", False), withdraw=options.pop("withdraw", False)
    )
    with service_client(url) as client:
        version = client.get(calibration)
        if use == ACTIVATE:
            point = client.activate_operating_point(version, **options)
            _print_active(version, point)
            _warn(point.warnings)
        elif use == WITHDRAW:
            made = client.withdraw_operating_point(version, **options)
            say(f"{version.reference}: withdrawn, as decision {made.number}. {NONE_ACTIVE}")
        elif use == PREVIEW:
            choice = {name: options[name] for name in (*CHOICES, "delta") if name in options}
            print_preview(version, client.preview_operating_point(version, **options), choice)
            _warn(_doubts(client, version))
        else:
            _print_decisions(version, client.operating_points(version))


def _use(options: Mapping[str, Any], *, activate: bool, withdraw: bool) -> str | None:
    """Return what the options ask for, a key of ``TAKEN``; None to show what was decided.

    Raises
    ------
    CommandFailed
        If they do not go together, or one is missing.
    """
    if activate and withdraw:
        raise CommandFailed("--activate and --withdraw: choose one")
    chosen = [name for name in CHOICES if name in options]
    use = ACTIVATE if activate else WITHDRAW if withdraw else PREVIEW if chosen else None
    for name in options:
        if name not in TAKEN.get(use or "", ()):
            takes = " or ".join(use for use, names in TAKEN.items() if name in names)
            raise CommandFailed(f"{option(name)} belongs to {takes}")
    if len(chosen) > 1:
        raise CommandFailed(f"{' and '.join(map(option, chosen))}: choose one")
    missing = [] if chosen or use != ACTIVATE else [CHOICE]
    if use in (ACTIVATE, WITHDRAW):
        missing += [option(name) for name in ("author", "reason") if name not in options]
    if missing:
        raise CommandFailed(f"{use} needs {' and '.join(missing)}")
    return use


NONE_ACTIVE = (
    "No operating point is active: `abstain` follows the risk targets in the configuration."
)


def _print_active(calibration: Calibration, point: OperatingPoint) -> None:
    say(
        f"{calibration.reference}: {point.name} is active: it accepts answers with "
        f"{accepted(_measure(calibration), point.threshold)}"
    )
    if point.consequences is not None:
        print_effects(calibration, point.consequences)


# Statuses of a report's summary that speak against automatic use.
REFUSED = ("warned", "disproved", "shifted")


def _doubts(client: Client, calibration: Calibration) -> list[str]:
    """Return why a calibration should not be used; empty if nothing is known against it."""
    summary = client.report(calibration)["summary"]
    if summary["status"] not in REFUSED:
        return []
    warnings = [found.message for found in calibration.findings if found.level == "warning"]
    return [summary["headline"], *warnings]


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        say(f"warning: {sentence}", Console(stderr=True), style=STYLES["warning"])


def _print_decisions(calibration: Calibration, points: Sequence[OperatingPoint]) -> None:
    active = next((point for point in points if point.active), None)
    if active is None:
        say(f"{calibration.reference}: {NONE_ACTIVE[0].lower()}{NONE_ACTIVE[1:]}")
    else:
        _print_active(calibration, active)
    if points:
        print_table(_decisions(points, scale_of(_measure(calibration)).up_to))
    _warn(() if active is None else active.warnings)


def _measure(calibration: Calibration) -> str:
    return (calibration.serve or {}).get(1, "")


def _decisions(points: Sequence[OperatingPoint], up_to: str) -> Table:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("no.", justify="right", no_wrap=True)
    table.add_column("date", no_wrap=True)
    for column in ("decision", "chosen by", "author", "reason"):
        table.add_column(column)
    for point in points:
        decision = f"{point.name}: {up_to} {exact(point.threshold)}" if point.name else "withdrawn"
        add_row(
            table,
            str(point.number),
            f"{point.created_at:%Y-%m-%d}",
            decision,
            _chosen_by(point.chosen_by or {}),
            point.author,
            point.reason,
        )
    return table


def _chosen_by(choice: Mapping[str, float]) -> str:
    if "max_risk" in choice:
        said = f"error rate {share(choice['max_risk'])}"
        return f"{said}, {confidence(choice['delta'])} confidence"
    if "coverage" in choice:
        return f"share {share(choice['coverage'])}"
    return "threshold" if choice else ""
