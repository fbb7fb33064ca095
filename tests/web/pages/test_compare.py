"""The page that compares calibrations with a first one."""

import json
import re
from typing import Any

import httpx
import numpy as np
import pytest
from keyed_service import KeyedService
from page_visitor import Visitor, elements, numbers_of, text_of
from running_service import calibrated, evaluate, npz

from service.reports.verdict import compared_verdict
from service.web.measures import VERDICTS

NAMES = ("digits@1", "digits@2", "scores", "moved", "digits@1")


def address(*names: str) -> str:
    return "/report?" + "&".join(f"calibration={name}" for name in names)


@pytest.fixture(scope="module")
def comparison(service: KeyedService) -> dict[str, Any]:
    return service.client().get(address(*NAMES)).json()


@pytest.fixture(scope="module")
def shown(service: KeyedService) -> str:
    return Visitor(service).open(address(*NAMES)).text


def test_the_share_of_accepted_answers_comes_first(shown, comparison) -> None:
    top = shown.partition('<section class="card"')[0]
    found = {path: json.loads(value) for _, path, value in numbers_of(top)}
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
    assert found == expected


def card_of(page: str, name: str) -> str:
    """Return the text of the comparison of a calibration with the first."""
    cards = re.findall(r'<section class="card".*?</section>', page, re.DOTALL)
    [card] = [card for card in cards if f"<bdi>{name}</bdi> against" in card]
    return text_of(card)


def test_the_page_says_whether_the_data_are_the_same(shown) -> None:
    paired = "Paired: both were judged on the same evaluation set"
    assert paired in card_of(shown, "digits@2")
    assert "Not the same data." in card_of(shown, "scores@1")
    assert "Imported bin tables have none." in card_of(shown, "moved@1")


def test_warnings_of_a_compared_calibration_come_before_its_numbers(service, shown) -> None:
    page = text_of(Visitor(service).open(address("warned", "scores")).text)
    warning = "warned@1: Do not use this calibration yet"
    assert page.index(warning) < page.index("scores@1 against warned@1")
    assert "Do not use this calibration yet" not in text_of(shown)


@pytest.fixture(scope="module")
def same_sets(service: KeyedService) -> dict[str, str]:
    """Return by name another calibration on the same calibration set."""
    client, rng = service.client(), np.random.default_rng(7)
    labels = np.arange(600) % 3
    logits = 3.0 * np.eye(3)[labels] + 2.0 * rng.normal(size=(600, 3))
    for shift, name in ((0, "fine"), (1, "bad")):
        content = npz(logits=logits, labels=(labels + shift) % 3)
        calibrated(client, {"name": name}, calibration=content)
        config = {"name": f"{name}-flat", "bins": 1, "lookup": "step"}
        calibrated(client, config, calibration=content)
    return {"fine": "fine-flat", "bad": "bad-flat"}


@pytest.mark.parametrize("order", [1, -1])
def test_nothing_is_better_or_worse_than_a_calibration_with_warnings(
    service, same_sets, order
) -> None:
    names = ("bad", same_sets["bad"])[::order]
    [compared] = service.client().get(address(*names)).json()["comparisons"]
    assert {event["undecided"] for event in compared["events"].values()} == {"warnings"}
    for sentence in compared["sentences"]:
        assert "no comparison, because of the warnings of" in sentence
    page = text_of(Visitor(service).open(address(*names)).text)
    assert "are not compared, because of warnings" in page
    assert "not judged" in page
    assert not re.search(r"clearly (better|worse)|is better|is worse", page)


def test_losses_of_models_of_other_accuracy_are_not_judged(service) -> None:
    """The surer model is wrong so often that its answers are easy to rate."""
    client, rng = service.client(), np.random.default_rng(6)
    labels = rng.integers(0, 5, 1500)
    for name, share in (("often-right", 0.7), ("seldom-right", 0.3)):
        logits = rng.normal(size=(1500, 5))
        logits[np.arange(1500), labels] += np.where(rng.random(1500) < share, 4.0, 0.0)
        halves = [npz(logits=logits[at::2], labels=labels[at::2]) for at in (0, 1)]
        calibrated(client, {"name": name}, calibration=halves[0], evaluation=halves[1])
    # The evaluation sets differ, so each is judged on its own data.
    [compared] = client.get(address("often-right", "seldom-right")).json()["comparisons"]
    assert compared["events"]["1"]["undecided"] == "accuracy"
    assert compared["events"]["1"]["differences"]["accuracy"]["mean"] < -0.2
    assert "often-right@1 is right more often than seldom-right@1" in compared["sentences"][0]
    page = text_of(Visitor(service).open(address("often-right", "seldom-right")).text)
    assert "seldom-right@1 is right less often than often-right@1" in page
    assert page.count("not judged") >= 2
    assert "clearly better" not in page


def test_the_losses_shown_are_those_of_the_differences(service, shown, same_sets) -> None:
    """One number for each name: the difference is that of two numbers of one row."""
    for *names, is_paired in (("digits@1", "digits@2", True), ("fine", same_sets["fine"], False)):
        page = Visitor(service).open(address(*names)).text
        [compared] = service.client().get(address(*names)).json()["comparisons"]
        event = compared["events"]["1"]
        assert event["paired"] is is_paired
        on = ("evaluation set", "cross-validated")[:: 1 if is_paired else -1]
        for heading in ("Negative log-likelihood", "Brier score"):
            assert f"{heading}, {on[0]}" in page
            assert f"{heading}, {on[1]}" not in page
        row = page.partition(f"Negative log-likelihood, {on[0]}")[2].partition("</tr>")[0]
        found = [float(value) for value in re.findall(r'data-value="([^"]+)"', row)]
        losses = found if is_paired else found[::2]
        assert losses[1] - losses[0] == pytest.approx(event["differences"]["nll"]["mean"])
    both = text_of(shown)
    assert "Negative log-likelihood, evaluation set" in both
    assert "Negative log-likelihood, cross-validated" in both
    assert "1 bins" not in both


def test_sentences_are_those_of_the_json(shown, comparison) -> None:
    for compared in comparison["comparisons"]:
        for sentence in compared["sentences"]:
            assert sentence in card_of(shown, compared["second"])


@pytest.mark.parametrize(
    ("names", "seen"), [(NAMES, "the same"), (("fine", "fine-flat"), "clearly worse")]
)
def test_each_difference_has_its_verdict(service, same_sets, names, seen) -> None:
    shown = Visitor(service).open(address(*names)).text
    comparison = service.client().get(address(*names)).json()
    words = dict(
        re.findall(
            r'data-path="(/comparisons/\d+/events/\d+/differences/\w+)/mean"'
            r'.{0,900}?class="hint verdict-word">([^<]+)<',
            shown.partition('<h2 id="top-1">')[2],
            re.DOTALL,
        )
    )
    assert words == {
        f"/comparisons/{at}/events/{k}/differences/{score}": VERDICTS.get(
            compared_verdict(event, score), "not judged"
        )
        for at, compared in enumerate(comparison["comparisons"])
        for k, event in compared["events"].items()
        for score in event["differences"]
    }
    assert seen in words.values()


def test_an_event_of_one_alone_is_shown(shown, comparison) -> None:
    assert [set(report["events"]) for report in comparison["calibrations"]][2] == {"1", "2"}
    assert '<h2 id="top-2">' in shown


def test_each_can_be_what_the_others_are_compared_with(service, shown, comparison) -> None:
    ids = [report["calibration"]["id"] for report in comparison["calibrations"]]
    wanted = address(ids[2], ids[0], ids[1], ids[3], ids[4])
    assert wanted in [a.get("href") for tag, a in elements(shown) if tag == "a"]
    assert "digits@1</bdi> against <bdi>scores@1" in Visitor(service).open(wanted).text


def test_as_many_as_may_be_compared_are_a_small_page(service) -> None:
    page = Visitor(service).open(address(*("digits@1", "digits@2") * 10))
    assert page.status_code == httpx.codes.OK
    assert len(page.content) < 1_000_000


def test_scores_on_a_common_further_set_are_under_its_name(service) -> None:
    client, rng = service.client(), np.random.default_rng(11)
    for at, name in enumerate(("july", "november", "december")):
        labels = rng.integers(0, 3, 600)
        content = npz(logits=rng.normal(size=(600, 3)) + at * np.eye(3)[labels], labels=labels)
        if name != "december":
            calibrated(client, {"name": name}, calibration=content)
    page = Visitor(service).open(address("july", "november")).text
    assert "howsure evaluate july@1 SET --name NAME" in text_of(page)
    assert "Scores, each on its own set" in page
    assert "clearly" not in card_of(page, "november@1")
    for name in ("july", "november"):
        evaluate(client, name, "december", content)
    page = Visitor(service).open(address("july", "november")).text
    assert "Paired: both were judged on the further set “december”" in card_of(page, "november@1")
    group = page.partition("Scores on the further set “december”")[2].partition("</tbody>")[0]
    compared = client.get(address("july", "november")).json()["comparisons"][0]
    shown = re.findall(r'data-path="([^"]+)" data-value="([^"]+)"', group)
    assert {(path, json.loads(value)) for path, value in shown} == {
        (f"/comparisons/0/judged/{at}/events/1/{score}", value)
        for at, one in enumerate(compared["judged"])
        for score, value in one["events"]["1"].items()
    }


def test_the_error_rate_in_use_is_that_of_the_operating_point(service) -> None:
    client, rng = service.client(), np.random.default_rng(12)
    labels = rng.integers(0, 3, 3000)
    logits = 2.0 * rng.normal(size=(3000, 3)) + 4.0 * np.eye(3)[labels]
    content = npz(logits=logits, labels=labels)
    for name, risk in (("decided", 0.2), ("requested", 0.1)):
        config = {"name": name, "selective": [{"max_risk": risk, "delta": 0.05}]}
        calibrated(client, config, calibration=content)
    chosen = {"name": "review", "max_risk": 0.05, "author": "Ann", "reason": "agreed"}
    made = client.post("/calibrations/decided/operating-points", json=chosen)
    assert made.status_code == httpx.codes.CREATED, made.text
    page = Visitor(service).open(address("decided", "requested")).text
    row = page.partition(">Error rate of accepted answers")[2].partition("</tr>")[0]
    first, second = row.replace("&nbsp;", " ").split("<td")[1:]
    assert "/calibrations/0/operating_point/consequences/risk" in first
    assert "/calibrations/1/events/1/figures/risk/value" in second
    assert "operating point “review”, at most 5 % wrong" in first
    assert "requested: at most 10 % wrong" in second
