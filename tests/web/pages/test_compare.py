"""The page that compares calibrations with a first one."""

import re
from typing import Any

import httpx
import pytest
from keyed_service import KeyedService
from page_visitor import Visitor, elements, pointed_to, text_of

from service.reports.verdict import verdict
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


def test_sentences_are_those_of_the_json(shown, comparison) -> None:
    for compared in comparison["comparisons"]:
        for sentence in compared["sentences"]:
            assert sentence in card_of(shown, compared["second"])


def test_each_difference_has_its_verdict(shown, comparison) -> None:
    words = dict(
        re.findall(
            r'data-path="(/comparisons/\d+/events/\d+/differences/\w+)/mean"'
            r'.{0,900}?class="hint verdict-word">([^<]+)<',
            shown.partition('<h2 id="top-1">')[2],
            re.DOTALL,
        )
    )
    assert words == {
        (path := f"/comparisons/{at}/events/{k}/differences/{score}"): VERDICTS[
            verdict(pointed_to(comparison, path), score)
        ]
        for at, compared in enumerate(comparison["comparisons"])
        for k, event in compared["events"].items()
        for score in event["differences"]
    }
    assert {"the same", "clearly worse"} <= set(words.values())


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
