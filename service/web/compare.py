"""``/report`` of several calibrations as a page: each compared with the first."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from howsure.numbers import share
from howsure.report.located import Located, value_of
from howsure.report.report import Report
from howsure.report.standing import Standing
from howsure.report.words.disproof import disproving_sets
from howsure.report.words.summary import active_point
from howsure.report.words.verdict import compared_verdict
from service.reports.charts.registry import render_figures
from service.reports.comparison.compare import compare_calibrations
from service.reports.comparison.comparisons import Comparisons
from service.reports.comparison.labelled_sets import SCORE_HEADINGS
from service.storage.operating_points import FIRST
from service.web.measures import VERDICTS, score_cell
from service.web.page import page
from service.web.page_route import tenant_of, workspace_of

Json = Mapping[str, Any]

# Compared scores and their headings.
HEADINGS = {"accuracy": "Accuracy"} | SCORE_HEADINGS
DIFFERENCES = ("nll", "brier", "accuracy")

# Why a calibration must not be used, by its status: a part of its report, and what links call it.
REASONS = {
    "warned": ("findings", "findings"),
    "disproved": ("summary-title", "report"),
    "shifted": ("further-sets", "further sets"),
}


def compared_events(found: Comparisons) -> list[dict[str, Any]]:
    """Return the events of all calibrations, by ascending k."""
    ks = {k for report in found.calibrations for k in report.events}
    return [_event(k, found) for k in sorted(ks, key=int)]


def _event(k: str, found: Comparisons) -> dict[str, Any]:
    reports, comparisons = Located(found)["calibrations"], Located(found)["comparisons"]
    columns = [_column(k, report) for report in reports]
    compared = [comparison["events"].get(k) for comparison in found.comparisons]
    return {
        "k": k,
        "columns": columns,
        "accepted": _accepted(columns),
        "common": _common(k, found.comparisons, comparisons),
        "differences": [
            (HEADINGS[score], [_difference(at["events"][k], score) for at in comparisons])
            for score in DIFFERENCES
            if any(event and score in event["differences"] for event in compared)
        ],
    }


def _common(
    k: str, comparisons: Sequence[Json], shown: Located
) -> list[tuple[str, list[Located | None]]]:
    """Return the name of each common further set, and the scores of each calibration on it."""
    found: dict[str, list[Located | None]] = {}
    for at, one in enumerate(comparisons):
        if one["basis"] != "further" or k not in one["events"]:
            continue
        first, second = (shown[at]["judged"][place]["events"][k] for place in (0, 1))
        cells = found.setdefault(one["on"], [first, *[None] * len(comparisons)])
        cells[at + 1] = second
    return list(found.items())


def _accepted(columns: Sequence[Json | None]) -> list[tuple[float, list[Json | None]]]:
    """Return each requested error rate with what each calibration accepts at it."""
    found = [
        {value_of(one["target"]["max_risk"]): one for one in column["selective"]} if column else {}
        for column in columns
    ]
    return [
        (rate, [by.get(rate) for by in found]) for rate in sorted({r for by in found for r in by})
    ]


def _column(k: str, report: Located) -> dict[str, Any] | None:
    event = report["events"][k]
    if not event:
        return None
    table = event["measures"][event["served"]]
    return {
        "figures": event["figures"],
        "served": event["served"],
        "cost": next(row for row in event["comparison"] if row["served"]),
        "bins": table["quantile_bins"],
        "table": table,
        "folds": value_of(report["provenance"]["config"]["folds"]) or 0,
        "selective": list(table["selective"] or ()),
        "in_use": _in_use(k, report),
        "evaluation": table["evaluation"] or None,
        "evaluation_sha256": value_of(report["provenance"]["data"]["evaluation_sha256"]),
    }


def _in_use(k: str, report: Located) -> dict[str, Any]:
    """Return the rule by which answers are accepted, and what it accepts on the calibration set.

    It is the active operating point, or else the first requested error rate with a threshold.
    """
    typed: Report = value_of(report)
    risk, point = report["events"][k]["figures"]["risk"], typed.operating_point
    if k == FIRST and point is not None:
        target = point.chosen_by.get("max_risk")
        promise = "not tested" if target is None else f"at most {share(target)} wrong"
        seen = report["operating_point"]["consequences"]
        return {
            "rule": f"operating point “{point.name}”, {promise}",
            "at": seen if active_point(typed, k) else None,
            "rate": seen["risk"],
            "interval": seen["risk_interval"],
        }
    return {
        "rule": f"requested: at most {share(value_of(risk['max_risk']))} wrong" if risk else "",
        "at": risk or None,
        "rate": risk["value"],
        "interval": risk["interval"],
    }


def _difference(event: Located, score: str) -> dict[str, Any] | None:
    """Return a difference from the first calibration, and its verdict."""
    found = event["differences"][score]
    if not found:
        return None
    verdict = compared_verdict(value_of(event), score)
    return {
        "at": found,
        "verdict": "not judged" if verdict is None else VERDICTS[verdict],
        "of": "samples" if event["paired"] or score == "accuracy" else "folds",
    }


def compare(request: Request, references: Sequence[str]) -> Response:
    """Show several calibrations, each compared with the first."""
    found = compare_calibrations(workspace_of(request), tenant_of(request), references)
    reports = found.calibrations
    ids = [report.calibration.id for report in reports]
    disproving = _disproving(reports)
    return page(
        request,
        "compare.html",
        columns=[
            _heading(report, Located(found)["calibrations"][at], at, ids, disproving)
            for at, report in enumerate(reports)
        ],
        against=[_against(at, found) for at in range(len(found.comparisons))],
        events=compared_events(found),
        bases=_bases(found),
        json=f"{_address(ids)}&format=json",
        headings=HEADINGS,
        score_cell=score_cell,
        chart=render_figures(found, address=_charts(ids)),
    )


def _bases(found: Comparisons) -> dict[str, bool]:
    """Return which losses of the own sets are shown: those that differences are computed from.

    Without any such difference they are the cross-validated ones, which most calibrations have.
    """
    bases = {one["basis"] for one in found.comparisons}
    return {
        "evaluation": "evaluation" in bases,
        "cross_validated": bases != {"evaluation"},
        "differ": not bases <= {"evaluation", "cross-validation"},
    }


def _address(ids: Sequence[str]) -> str:
    """Return the address of a comparison with the first of these."""
    return f"/report?{_query(ids)}"


def _charts(ids: Sequence[str]) -> str:
    """Return the base URL of the figures of a comparison as files."""
    return f"/pages/calibrations/{ids[0]}/charts?{_query(ids[1:])}"


def _query(ids: Sequence[str]) -> str:
    return urlencode([("calibration", one) for one in ids])


def _disproving(reports: Sequence[Report]) -> dict[str, str]:
    """Return the further sets that disprove one of the calibrations: names, and digests."""
    return {
        one.name: one.sha256
        for report in reports
        for one in disproving_sets(report.evaluations, Standing.of(report).k)
    }


def _heading(
    report: Report, shown: Located, at: int, ids: Sequence[str], disproving: Mapping[str, str]
) -> dict[str, Any]:
    summary, data = report.summary, report.provenance.data
    status = None if summary is None else summary.status
    seen = {key for one in report.evaluations for key in (one.name, one.sha256)}
    seen.add(data.get("evaluation_sha256") or "")
    return {
        "at": shown,
        "is_first": at == 0,
        "about": report.calibration,
        "warning": summary.headline if summary is not None and status in REASONS else "",
        "untested": [name for name, of in disproving.items() if seen.isdisjoint({name, of})],
        "reason": REASONS.get(status or ""),
        "as_first": _address([ids[at], *ids[:at], *ids[at + 1 :]]),
        "model": report.provenance.model,
        "data": data,
    }


def _against(at: int, found: Comparisons) -> dict[str, Any]:
    """Return the basis and the sentences of a comparison with the first calibration."""
    comparison = found.comparisons[at]
    first, second = (
        found.calibrations[place].provenance.data.get("sha256") for place in (0, at + 1)
    )
    names = ("first", "second", "basis", "on", "sentences", "to_decide")
    return {name: comparison[name] for name in names} | {"is_same_set": first == second}
