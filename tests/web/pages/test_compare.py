"""The page that compares calibrations with a first one."""

import html
import json
import re
from typing import Any

import httpx
import numpy as np
import pytest
from page_visitor import Visitor, elements, numbers_of
from report_scenarios import activate, of_outputs, outputs, send_set

NAMES = ("pictures@1", "pictures@2", "imported", "pictures@1")


def address(*names: str) -> str:
    return "/report?" + "&".join(f"calibration={name}" for name in names)


def comparison_of(client: httpx.Client, *names: str) -> dict[str, Any]:
    return client.get(address(*names)).json()


def page_of(visitor: Visitor, *names: str) -> str:
    return visitor.open(address(*names)).text


@pytest.fixture(scope="module")
def comparison(client: httpx.Client, shelf) -> dict[str, Any]:
    for name in ("pictures", "imported"):
        shelf(name)
    return comparison_of(client, *NAMES)


@pytest.fixture(scope="module")
def page(client: httpx.Client, comparison) -> str:
    return client.get(address(*NAMES), headers={"Accept": "text/html"}).text


@pytest.fixture(scope="module")
def same_sets(client: httpx.Client) -> dict[str, str]:
    """Return by name another calibration on the same calibration set."""
    for shift, name in ((0, "fine"), (1, "bad")):
        arrays = outputs(400, seed=41, scale=6.0, shift=shift)
        of_outputs(arrays, folds=10)(client, name)
        of_outputs(arrays, bins=1, lookup="step", folds=10)(client, f"{name}-flat")
    return {"fine": "fine-flat", "bad": "bad-flat"}


def test_the_share_of_accepted_answers_comes_first(page, comparison) -> None:
    top = page.partition('<section class="card"')[0]
    shown = {path: json.loads(value) for _, path, value in numbers_of(top)}
    expected = {}
    for at, report in enumerate(comparison["calibrations"]):
        event = report["events"]["1"]
        served = event["served"].replace("~", "~0").replace("/", "~1")
        path = f"/calibrations/{at}/events/1/measures/{served}/selective"
        for i, one in enumerate(event["measures"][event["served"]].get("selective") or ()):
            if one["threshold"] is not None:
                expected[f"{path}/{i}/coverage"] = one["coverage"]
                expected[f"{path}/{i}/n_accepted"] = one["n_accepted"]
    assert expected
    assert shown == expected


@pytest.mark.parametrize("order", [1, -1])
def test_calibrations_with_warnings_are_not_judged(client, visitor, same_sets, order) -> None:
    names = ("bad", same_sets["bad"])[::order]
    (compared,) = comparison_of(client, *names)["comparisons"]
    assert {event["undecided"] for event in compared["events"].values()} == {"warnings"}
    text = page_of(visitor, *names)
    # The warnings come before all numbers.
    assert 0 < text.index('<p class="refused">') < text.index('<section class="card"')
    assert set(verdicts(text)) == {"not judged"}


def verdicts(page: str) -> list[str]:
    return re.findall(r'class="hint verdict-word">([^<]+)<', page)


def test_losses_of_models_of_other_accuracy_are_not_judged(client, visitor) -> None:
    """The surer model is wrong so often that its answers are easy to rate."""
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 5, 800)
    for share in (0.7, 0.3):
        logits = rng.normal(size=(800, 5))
        logits[np.arange(800), labels] += np.where(rng.random(800) < share, 4.0, 0.0)
        halves = [{"logits": logits[at::2], "labels": labels[at::2]} for at in (0, 1)]
        of_outputs(*halves)(client, "accuracies")
    names = ("accuracies@1", "accuracies@2")
    (compared,) = comparison_of(client, *names)["comparisons"]
    assert compared["events"]["1"]["undecided"] == "accuracy"
    assert compared["events"]["1"]["differences"]["accuracy"]["mean"] < -0.2
    assert sorted(verdicts(page_of(visitor, *names))) == ["clearly worse", *["not judged"] * 2]


def test_the_losses_shown_are_those_of_the_differences(client, visitor, page, same_sets) -> None:
    """One number for each name: the difference is that of two numbers of one row."""
    cases = ("pictures@1", "pictures@2", True), ("fine", same_sets["fine"], False)
    for *names, is_paired in cases:
        text = page_of(visitor, *names)
        (compared,) = comparison_of(client, *names)["comparisons"]
        event = compared["events"]["1"]
        assert event["paired"] is is_paired
        on = ("evaluation set", "cross-validated")[:: 1 if is_paired else -1]
        for heading in ("Negative log-likelihood", "Brier score"):
            assert f"{heading}, {on[0]}" in text
            assert f"{heading}, {on[1]}" not in text
        row = text.partition(f"Negative log-likelihood, {on[0]}")[2].partition("</tr>")[0]
        numbers = [float(value) for value in re.findall(r'data-value="([^"]+)"', row)]
        losses = numbers if is_paired else numbers[::2]
        assert losses[1] - losses[0] == pytest.approx(event["differences"]["nll"]["mean"])
    for on in ("evaluation set", "cross-validated"):
        assert f"Negative log-likelihood, {on}" in page


def test_events_of_one_alone_are_shown_and_each_can_be_the_first(visitor, page, comparison) -> None:
    assert [set(report["events"]) for report in comparison["calibrations"]][2] == {"1", "2"}
    assert '<h2 id="top-2">' in page
    assert "the same" in verdicts(page)
    ids = [report["calibration"]["id"] for report in comparison["calibrations"]]
    wanted = address(ids[2], ids[0], ids[1], ids[3])
    assert wanted in [a.get("href") for tag, a in elements(page) if tag == "a"]
    assert "against <bdi>imported@1" in visitor.open(wanted).text


def test_scores_on_a_common_further_set_are_under_its_name(client, visitor, shelf) -> None:
    shelf("versions")
    names = ("versions@1", "versions@2")
    group = page_of(visitor, *names).partition("further set “december”</span>")[2]
    (compared,) = comparison_of(client, *names)["comparisons"]
    shown = re.findall(r'data-path="([^"]+)" data-value="([^"]+)"', group.partition("</tbody>")[0])
    assert {(path, json.loads(value)) for path, value in shown} == {
        (f"/comparisons/0/judged/{at}/events/1/{score}", value)
        for at, one in enumerate(compared["judged"])
        for score, value in one["events"]["1"].items()
    }


def test_a_set_of_one_alone_is_told(client, visitor) -> None:
    for seed, name in ((42, "july"), (43, "november")):
        of_outputs(outputs(300, seed=seed))(client, name)
    send_set(client, "july", "december", outputs(300, seed=44, wrong=0.4))
    assert "howsure evaluate november@1 SET" in page_of(visitor, "july", "november")
    # It disproves the first, and the second was not evaluated on it.
    text = page_of(visitor, "july", "november").partition('<section class="card"')[0]
    assert text.count("<bdi>december</bdi>") == 1


def test_the_error_rate_in_use_is_that_of_the_operating_point(client, visitor, same_sets) -> None:
    names = ("tested", "untested", "fine")
    arrays = outputs(300, seed=45, scale=6.0)
    for name, choice in zip(names, ({"max_risk": 0.2}, {"coverage": 0.5}), strict=False):
        activate(client, of_outputs(arrays)(client, name)["id"], name=f"{name}-point", **choice)
    row = page_of(visitor, *names).partition(">Error rate of accepted answers")[2]
    tested, untested, requested = row.partition("</tr>")[0].replace("&nbsp;", " ").split("<td")[1:]
    for at, cell in enumerate((tested, untested)):
        assert f"/calibrations/{at}/operating_point/consequences/risk" in cell
        assert f"“{names[at]}-point”" in cell
    assert "20 %" in tested
    assert "/calibrations/2/events/1/figures/risk/value" in requested


def test_charts_by_the_size_of_models_are_folded_and_files(client, visitor, shelf) -> None:
    for name in ("pictures", "quick-digits", "small-digits"):
        shelf(name)
    text = page_of(visitor, "quick-digits", "small-digits")
    folded = text.partition('<details class="part">')[2].partition("<section")[0]
    assert 'id="model-size"' in folded
    links = re.findall(r'href="([^"]*\.svg[^"]*)"', folded)
    assert {link.partition("?")[0].rsplit("/", 1)[1] for link in links} >= {"aurc.svg", "aece.svg"}
    comparison = re.findall(r'href="([^"]*/comparison/0\.svg[^"]*)"', page_of(visitor, *NAMES))
    for link in (*links, *comparison[:1]):
        answer = client.get(html.unescape(link))
        assert answer.headers["content-type"] == "image/svg+xml", link
    assert 'id="model-size"' not in page_of(visitor, "pictures@1", "pictures@2")
