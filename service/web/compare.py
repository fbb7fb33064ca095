"""``/report`` of several calibrations as a page: each compared with the first."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from service.reports.charts.registry import render_figures
from service.reports.comparison import compare_calibrations
from service.reports.further_sets import disproving_sets
from service.reports.located import Located, value_of
from service.reports.verdict import compared_verdict
from service.web.measures import VERDICTS
from service.web.page import page
from service.web.page_route import charts_of, tenant_of, workspace_of

Json = Mapping[str, Any]

# Compared scores and their headings.
DIFFERENCES = {
    "nll": "Negative log-likelihood",
    "brier": "Brier score",
    "accuracy": "Accuracy",
}

# Why a calibration must not be used, by its status: a part of its report, and what links call it.
REASONS = {
    "warned": ("findings", "findings"),
    "disproved": ("summary-title", "report"),
    "shifted": ("further-sets", "further sets"),
}


def compared_events(found: Json) -> list[dict[str, Any]]:
    """Return the events of all calibrations, by ascending k."""
    ks = {k for report in found["calibrations"] for k in report["events"]}
    return [_event(k, found) for k in sorted(ks, key=int)]


def _event(k: str, found: Json) -> dict[str, Any]:
    reports, comparisons = Located(found)["calibrations"], Located(found)["comparisons"]
    columns = [_column(k, report) for report in reports]
    compared = [comparison["events"].get(k) for comparison in found["comparisons"]]
    return {
        "k": k,
        "columns": columns,
        "accepted": _accepted(columns),
        "differences": [
            (heading, [_difference(at["events"][k], score) for at in comparisons])
            for score, heading in DIFFERENCES.items()
            if any(event and score in event["differences"] for event in compared)
        ],
    }


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
        "scores": table["scores"],
        "selective": list(table["selective"] or ()),
        "evaluation": table["evaluation"] or None,
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
    reports = found["calibrations"]
    ids = [report["calibration"]["id"] for report in reports]
    disproving = _disproving(reports)
    return page(
        request,
        "compare.html",
        columns=[
            _heading(report, Located(found)["calibrations"][at], at, ids, disproving)
            for at, report in enumerate(reports)
        ],
        against=[_against(at, found) for at in range(len(found["comparisons"]))],
        events=compared_events(found),
        bases=_bases(found),
        json=f"{_address(ids)}&format=json",
        chart=render_figures(charts_of(request), found, ("comparison",)),
    )


def _bases(found: Json) -> dict[str, bool]:
    """Return which losses the differences are computed from; the cross-validated ones at least."""
    paired = [event["paired"] for one in found["comparisons"] for event in one["events"].values()]
    return {"paired": any(paired), "unpaired": not all(paired) or not paired}


def _address(ids: Sequence[str]) -> str:
    """Return the address of a comparison with the first of these."""
    return f"/report?{urlencode([('calibration', found) for found in ids])}"


def _disproving(reports: Sequence[Json]) -> dict[str, str]:
    """Return the further sets that disprove one of the calibrations: names, and digests."""
    return {
        one["name"]: one["sha256"]
        for report in reports
        for one in disproving_sets(report["evaluations"], report["summary"]["event"])
    }


def _heading(
    report: Json, shown: Located, at: int, ids: Sequence[str], disproving: Mapping[str, str]
) -> dict[str, Any]:
    summary, data = report["summary"], report["provenance"]["data"]
    seen = {one[key] for one in report["evaluations"] for key in ("name", "sha256")}
    seen |= {data.get("evaluation_sha256")}
    return {
        "at": shown,
        "is_first": at == 0,
        "about": report["calibration"],
        "warning": summary["headline"] if summary["status"] in REASONS else "",
        "untested": [name for name, of in disproving.items() if seen.isdisjoint({name, of})],
        "reason": REASONS.get(summary["status"]),
        "as_first": _address([ids[at], *ids[:at], *ids[at + 1 :]]),
        "model": report["provenance"]["model"],
        "data": data,
    }


def _against(at: int, found: Json) -> dict[str, Any]:
    """Return the basis and the sentences of a comparison with the first calibration."""
    comparison = found["comparisons"][at]
    first, second = (
        found["calibrations"][place]["provenance"]["data"]["sha256"] for place in (0, at + 1)
    )
    return {
        "first": comparison["first"],
        "second": comparison["second"],
        "is_judged": any(event["differences"] for event in comparison["events"].values()),
        "is_paired": any(event["paired"] for event in comparison["events"].values()),
        "is_same_set": first == second,
        "on": comparison["on"],
        "sentences": comparison["sentences"],
    }
