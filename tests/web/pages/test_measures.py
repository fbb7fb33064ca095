"""The page of measures: which serves and why, what ties with it, and how to change it."""

import html
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from model_services import HOSTILE
from page_visitor import HTML, numbers_of, pointed_to
from report_scenarios import outputs
from running_service import WAIT, calibrated, npz, refit, report_of

from howsure.report.figures import COMPARED
from howsure.report.words.verdict import TIES, verdict
from howsure.statistics.comparison import PairedDifference
from howsure.statistics.measures import MEASURE_NAMES
from service.web.measures import NEEDS, SCORES, needs_of

OUTPUT = f"output:{HOSTILE}"
LAST_LAYER = "last_layer_dropout_variance"


@contextmanager
def refitted(client: httpx.Client, **changes: Any) -> Iterator[str]:
    """Yield the name of a version that is fitted anew."""
    made = refit(client, "pictures@1", folds=2, **changes).json()
    assert made["status"] == "succeeded", made
    yield f"pictures@{made['version']}"
    client.delete(f"/calibrations/{made['id']}").raise_for_status()


def page_of(client: httpx.Client, name: str) -> str:
    address = f"/pages/calibrations/{name}/measures"
    return client.get(address, headers=HTML).raise_for_status().text


@pytest.fixture(scope="module")
def report(client: httpx.Client, shelf) -> dict[str, Any]:
    shelf("pictures")
    return report_of(client, "pictures@1")


@pytest.fixture(scope="module")
def shown(client: httpx.Client, report) -> str:
    return page_of(client, "pictures@1")


def test_scores_are_those_of_the_comparison(shown, report) -> None:
    """Of all folds together where the report's comparison has them so: Top-5 has few errors."""
    found = {path for _, path, _ in numbers_of(shown)}
    pooled = 0
    for k, event in report["events"].items():
        for row in event["comparison"]:
            scores = f"/events/{k}/measures/{row['measure'].replace('/', '~1')}/scores"
            for score in COMPARED:
                kind = "pooled" if row[score]["pooled"] else "mean"
                assert f"{scores}/{score}/{kind}" in found
                assert pointed_to(report, f"{scores}/{score}/{kind}") == row[score]["value"]
                pooled += row[score]["pooled"]
    assert pooled > 0


def test_a_measure_that_is_configured_serves_and_another_costs_less(client, shown) -> None:
    with refitted(client, serve={"5": LAST_LAYER}) as name:
        second = page_of(client, name).partition('<h2 id="top-5">')[2]
        comparison = report_of(client, name)["events"]["5"]["comparison"]
    for part, is_configured in ((second, True), (shown.partition('<h2 id="top-1">')[2], False)):
        assert ("in serve." in part.partition("</p>")[0]) == is_configured
    costs = {row["measure"]: row["ms_per_row"] for row in comparison}
    ties = [
        row["measure"]
        for row in comparison
        if row["difference"] and verdict(PairedDifference(**row["difference"])) in TIES
    ]
    cheapest = min(ties, key=costs.__getitem__)
    # As a rule its passes of the last layer take longer; a busy machine may measure otherwise.
    cheaper = re.findall(r"Of these <code><bdi>(.*?)</bdi></code> costs less: (.*)", second)
    assert [html.unescape(name) for name, _ in cheaper] == (
        [cheapest] if costs[cheapest] < costs[LAST_LAYER] else []
    )
    for _, sentence in cheaper:
        values = [json.loads(value) for value in re.findall(r'data-value="([^"]+)"', sentence)]
        assert values == [costs[cheapest], costs[LAST_LAYER]]


def test_a_preferred_measure_is_not_said_to_have_the_lowest_score(client) -> None:
    config = {"name": "preferred", "top_k": [1], "bins": 5}
    content = npz(**outputs(400, seed=8, scale=2.0))
    calibrated(client, config, full=True, calibration=content)
    event = report_of(client, "preferred")["events"]["1"]
    assert event["served"] == "learned" != event["comparison"][0]["measure"]
    assert "it is preferred" in page_of(client, "preferred")


def test_the_command_makes_another_measure_serve(client, report) -> None:
    """The command is quoted for a shell, even if a measure's name needs it."""
    with refitted(client, serve={"5": OUTPUT}) as name:
        page = page_of(client, name)
        [command] = re.findall(r"<pre[^>]*><code>(curl .*?)</code></pre>", page, re.DOTALL)
        words = shlex.split(html.unescape(command))
        body, header = (words[words.index(option) + 1] for option in ("-d", "-H"))
        headers = dict([header.split(": ")]) | WAIT
        sent = client.post(words[1], content=body.encode(), headers=headers)
        assert sent.status_code == httpx.codes.CREATED, sent.text
        client.delete(f"/calibrations/{sent.json()['id']}").raise_for_status()
        before = report_of(client, name)["events"]["1"]["comparison"]
    other = next(row["measure"] for row in before if not row["served"])
    assert sent.json()["serve"] == {"1": other, "5": OUTPUT}


def test_each_measure_has_its_needs() -> None:
    assert NEEDS.keys() == set(MEASURE_NAMES)
    assert "uncertainty_doctor" in needs_of("supplied:doctor")
    assert "output confidence" in needs_of("output:confidence")


def test_each_column_is_explained_in_the_documentation(shown) -> None:
    statistics = Path(__file__).parents[3] / "docs" / "statistics.md"
    headings = re.findall(r"^#+ `?(.*?)`?$", statistics.read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    named = set(re.findall(r"<code>docs/statistics\.md#(.*?)</code>", shown))
    assert {score.name for score in SCORES} <= named <= anchors
    assert all(f"<dt>{score.heading}</dt>" in shown for score in SCORES)
