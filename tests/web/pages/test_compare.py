"""Calibrations side by side: chosen on pages, with every number that of the JSON."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from keyed_service import KeyedService, keyed_service, logits_of
from page_visitor import HTML, Visitor, elements, pointed_to

WAIT = {"Prefer": "wait=60"}
MOST_OF_A_PAGE = 1_000_000


def noisy(seed: int, n: int = 300) -> bytes:
    """Return a set whose uncertainty tells little; another seed, another set."""
    lines = logits_of(n=n).decode().splitlines()
    shuffled = [
        f"{(int(line[0]) + (at * seed % 11 == 0)) % 3}{line[1:]}"
        for at, line in enumerate(lines[1:])
    ]
    return "\n".join([lines[0], *shuffled]).encode()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("compare"), first=False) as found:
        client = found.client()

        def calibrate(name: str, rows: bytes, evaluation: bytes | None, **config: Any) -> None:
            asked = {"name": name, "bins": 6, "folds": 4} | config
            files = [("calibration", ("c.csv", rows)), ("config", (None, json.dumps(asked)))]
            if evaluation is not None:
                files.append(("evaluation", ("e.csv", evaluation)))
            made = client.post("/calibrate", files=files, headers=WAIT)
            assert made.json()["status"] == "succeeded", made.text

        calibrate("first", logits_of(n=300), noisy(5), measures=["entropy", "margin"])
        calibrate("alone", noisy(3), None, top_k=[1, 2])
        # Its calibration is that of @1 but for the bins, judged on the same samples.
        refit = client.post("/calibrations/first/refit", json={"bins": 1}, headers=WAIT)
        assert refit.json()["status"] == "succeeded", refit.text
        document = client.get("/calibrations/first@1/bins").json()
        moved = client.post("/calibrations/import", params={"name": "moved"}, json=document)
        assert moved.status_code == httpx.codes.CREATED, moved.text
        yield found


def address(*names: str) -> str:
    return "/report?" + "&".join(f"calibration={name}" for name in names)


def numbers(page: httpx.Response) -> dict[str, Any]:
    found = [a for _, a in elements(page.text) if "data-path" in a]
    return {a["data-path"]: json.loads(a["data-value"]) for a in found}


ALL = ("first@1", "first@2", "alone", "moved")


@pytest.fixture(scope="module")
def comparison(service: KeyedService) -> dict[str, Any]:
    return service.client().get(address(*ALL)).json()


@pytest.fixture(scope="module")
def shown(service: KeyedService) -> httpx.Response:
    return Visitor(service).open(address(*ALL))


def test_every_number_is_one_of_the_json(shown, comparison) -> None:
    found = numbers(shown)
    for path, value in found.items():
        assert value == pointed_to(comparison, path), path
        assert isinstance(value, int | float | None)
    for at, report in enumerate(comparison["calibrations"]):
        for k, event in report["events"].items():
            assert f"/calibrations/{at}/events/{k}/figures/accuracy/value" in found
            scores = f"/calibrations/{at}/events/{k}/measures/{event['served']}/scores"
            # Imported tables, the last ones, have none.
            assert (f"{scores}/nll/mean" in found) == (at < len(ALL) - 1)
    for at, compared in enumerate(comparison["comparisons"]):
        for k, event in compared["events"].items():
            for score in event["differences"]:
                assert f"/comparisons/{at}/events/{k}/differences/{score}/mean" in found


def test_numbers_stand_nowhere_else_in_tables(shown) -> None:
    text = re.sub(r'<span class="number".*?</span>', "", shown.text)
    text = re.sub(r"<code>.*?</code>|<th.*?</th>|<details>.*?</details>", "", text, flags=re.DOTALL)
    for cell in re.findall(r'<td class="n">(.*?)</td>', text, re.DOTALL):
        assert not re.search(r"\d", re.sub(r"\d{4}-.* UTC|<a .*?</a>", "", cell)), cell


def said_of(page: httpx.Response, name: str) -> str:
    """Return what stands in the card of a comparison with the first."""
    cards = re.findall(r'<section class="card".*?</section>', page.text, re.DOTALL)
    [card] = [card for card in cards if f"<bdi>{name}</bdi> against" in card]
    return re.sub(r"<[^>]+>", "", card)


def test_it_says_whether_the_data_are_the_same(shown) -> None:
    assert "Paired: both were judged on the same evaluation set" in said_of(shown, "first@2")
    assert "Not the same data." in said_of(shown, "alone@1")
    assert "Imported bin tables have none." in said_of(shown, "moved@1")


def test_sentences_are_those_of_the_json(shown, comparison) -> None:
    for compared in comparison["comparisons"]:
        for sentence in compared["sentences"]:
            assert sentence in said_of(shown, compared["second"])


def test_ties_are_called_ties(service) -> None:
    """By the words beside each difference, and what its standard error says of it."""
    names = ("first@1", "first@2", "alone", "first@1")
    page = Visitor(service).open(address(*names))
    comparison = service.client().get(address(*names)).json()
    words = re.findall(
        r'data-path="(/comparisons/\d+/events/\d+/differences/\w+)/mean"'
        r'.{0,900}?class="hint verdict-word">([^<]+)<',
        page.text.partition('<h2 id="top-1">')[2],
        re.DOTALL,
    )
    assert len(words) == sum(
        len(event["differences"])
        for compared in comparison["comparisons"]
        for event in compared["events"].values()
    )
    for path, word in words:
        found = pointed_to(comparison, path)
        if found["mean"] == 0 and not found["standard_error"]:
            assert word == "the same"
        elif abs(found["mean"]) <= 2 * found["standard_error"]:
            assert word == "tie: may be chance"
        else:
            is_gain = (found["mean"] > 0) == path.endswith("accuracy")
            assert word == ("clearly better" if is_gain else "clearly worse")
    assert "first@1 and first@1 have the same negative log-likelihood" in said_of(page, "first@1")
    assert {word for _, word in words} >= {"the same", "tie: may be chance", "clearly worse"}


def test_an_event_of_one_alone_is_shown(shown, comparison) -> None:
    assert [set(report["events"]) for report in comparison["calibrations"]][2] == {"1", "2"}
    assert '<h2 id="top-2">' in shown.text


def test_each_can_be_what_the_others_are_compared_with(service, shown, comparison) -> None:
    ids = [report["calibration"]["id"] for report in comparison["calibrations"]]
    wanted = address(ids[2], ids[0], ids[1], ids[3])
    assert wanted in [a.get("href") for tag, a in elements(shown.text) if tag == "a"]
    assert "first@1</bdi> against <bdi>alone@1" in Visitor(service).open(wanted).text


def chosen(page: str, button: str) -> list[tuple[str, dict[str, str | None]]]:
    """Return the fields of the form that has this button."""
    [form] = [form for form in re.findall(r"<form.*?</form>", page, re.DOTALL) if button in form]
    assert 'method="get" action="/report"' in form
    return [(tag, a) for tag, a in elements(form) if a.get("name") == "calibration"]


def test_the_home_page_lets_names_be_chosen(service) -> None:
    visitor = Visitor(service)
    fields = chosen(visitor.open("/").text, "Compare those chosen")
    assert {a["type"] for _, a in fields} == {"checkbox"}
    assert [a["aria-label"] for _, a in fields] == [
        "Compare moved@1",
        "Compare first@2",
        "Compare alone@1",
    ]
    page = visitor.open(address(*(a["value"] or "" for _, a in fields[1:])))
    assert "alone@1</bdi> against <bdi>first@2" in page.text


def test_a_report_offers_the_other_versions(service, comparison) -> None:
    visitor = Visitor(service)
    ids = [report["calibration"]["id"] for report in comparison["calibrations"]]
    fields = chosen(visitor.open("/report?calibration=first@1").text, "Compare with @1")
    assert [(a["type"], a["value"]) for _, a in fields] == [
        ("hidden", ids[0]),
        ("checkbox", ids[1]),
    ]
    assert "Compare with other versions" not in visitor.open("/report?calibration=alone").text


@pytest.mark.parametrize(
    ("names", "status", "said"),
    [
        ((), 422, "choose one to read, or several to compare"),
        (("first", "none"), 404, "none"),
        (("first",) * 21, 422, "at most 20"),
    ],
)
def test_what_cannot_be_compared_is_said_on_a_page(service, names, status, said) -> None:
    answer = service.client().get(address(*names), headers=HTML)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert said in answer.text


def test_as_many_as_may_be_compared_are_a_small_page(service) -> None:
    page = Visitor(service).open(address(*("first@1", "first@2") * 10))
    assert page.status_code == httpx.codes.OK
    assert len(page.content) < MOST_OF_A_PAGE


def test_programs_get_what_they_got_before(service) -> None:
    client = service.client()
    asked = address("first@1", "alone")
    for url, headers in ((asked, {"Accept": "*/*"}), (f"{asked}&format=json", HTML)):
        answer = client.get(url, headers=headers)
        assert answer.headers["content-type"] == "application/json"
        assert set(answer.json()) == {"calibrations", "comparisons"}
