"""The report as files: one of HTML that needs nothing, and a model card, with the same numbers."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml
from keyed_service import KeyedService, keyed_service, logits_of
from page_visitor import HTML, Visitor, elements

WAIT = {"Prefer": "wait=60"}
HOSTILE = ["<script>alert(1)</script>", "=1+1\n# *b*", "\u202eabc &amp;"]
FETCHED = ("src", "srcset", "poster", "data", "action", "background", "ping")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("saved"), first=False) as found:
        config = json.dumps({"name": "digits", "classes": HOSTILE, "bins": 6})
        files = [
            ("calibration", ("c.csv", logits_of(n=400))),
            ("evaluation", ("e.csv", logits_of(n=300))),
            ("config", (None, config)),
        ]
        made = found.client().post("/calibrate", files=files, headers=WAIT)
        assert made.json()["status"] == "succeeded", made.text
        further = [("evaluation", ("f.csv", logits_of(n=200))), ("name", (None, HOSTILE[0]))]
        found.client().post("/calibrations/digits/evaluations", files=further, headers=WAIT)
        yield found


@pytest.fixture(scope="module")
def report(service: KeyedService) -> dict[str, Any]:
    return saved(service, "json").json()


@pytest.fixture(scope="module")
def file(service: KeyedService) -> httpx.Response:
    return saved(service, "html")


@pytest.fixture(scope="module")
def card(service: KeyedService) -> str:
    return saved(service, "model-card").text


def saved(service: KeyedService, form: str) -> httpx.Response:
    answer = service.client().get("/report", params={"calibration": "digits", "format": form})
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer


def at(report: Any, path: str) -> Any:
    for part in path.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        report = report[int(name)] if isinstance(report, list) else report[name]
    return report


def numbers(text: str) -> list[tuple[str, Any]]:
    found = [a for _, a in elements(text) if "data-path" in a]
    return [(a["data-path"], json.loads(a["data-value"])) for a in found]


def test_every_number_of_the_file_is_one_of_the_report(file, report) -> None:
    found = numbers(file.text)
    assert len(found) > 50
    for path, value in found:
        assert at(report, path) == value, path


def test_the_file_shows_what_the_page_shows(service, file) -> None:
    page = Visitor(service).open("/report?calibration=digits")
    assert numbers(file.text) == numbers(page.text)
    for tag in ("svg", "table", "section", "h2", "h3", "figure"):
        counts = [sum(found == tag for found, _ in elements(t.text)) for t in (file, page)]
        assert counts[0] == counts[1] > 0, tag


def test_the_file_asks_for_nothing(file) -> None:
    """Opened from a disk, without a network: what it shows is in it."""
    found = elements(file.text)
    assert not {tag for tag, _ in found} & {"script", "link", "img", "iframe", "object", "base"}
    for tag, attributes in found:
        assert not set(attributes) & {*FETCHED, "style"}, (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or attributes.get("xlink:href") or "#").startswith("#")
    (sheet,) = re.findall(r"<style>(.*?)</style>", file.text, re.DOTALL)
    assert "@import" not in sheet
    assert "url(" not in sheet
    assert "prefers-color-scheme: dark" in sheet
    assert "size: A4" in sheet


def test_the_file_forbids_browsers_to_ask(file) -> None:
    (policy,) = [a["content"] for _, a in elements(file.text) if a.get("http-equiv") is not None]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == "'none'"
    assert re.fullmatch(r"'sha256-[\w+/]{43}='", rules.pop("style-src"))
    assert set(rules.values()) == {"'none'"}
    # Seen at its address it is under the same rules.
    assert file.headers["content-security-policy"].startswith(policy)


def test_names_of_strangers_are_text_in_all_of_them(file, card) -> None:
    assert "<script" not in file.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in file.text
    assert r"\<script\>alert(1)\</script\>" in card
    assert r"=1+1 \# \*b\*" in card
    assert "\u202e" not in card
    assert r"abc \&amp;" in card


def test_all_forms_are_linked_and_named_by_their_links(service) -> None:
    page = Visitor(service).open("/report?calibration=digits")
    links = [a for tag, a in elements(page.text) if tag == "a" and "download" in a]
    kinds = {}
    for link in links:
        answer = service.client().get(link["href"])
        kinds[link["download"]] = answer.headers["content-type"].partition(";")[0]
    assert kinds == {
        "digits-1.html": "text/html",
        "digits-1.md": "text/markdown",
        "digits-1-card.md": "text/markdown",
        "digits-1.csv": "text/csv",
        "digits-1.json": "application/json",
    }


def test_the_front_matter_of_a_model_card_has_the_report_s_numbers(card, report) -> None:
    _, front, text = card.split("---\n", 2)
    found = yaml.safe_load(front)
    (model,) = found["model-index"]
    assert model["name"] == "digits"
    assert found["license"] is None
    values = {m["name"]: m["value"] for m in model["results"][0]["metrics"]}
    for k, event in report["events"].items():
        scores = event["measures"][event["served"]]["scores"]
        assert values.pop(f"Top-{k} accuracy") == event["accuracy"]
        for name in ("ece_15", "brier", "nll", "auroc"):
            assert values.pop(f"Top-{k} {name}", None) == scores[name]["mean"]
        assert f"{event['figures']['accuracy']['interval'][0]:.4f}" in text
    assert values == {}
    assert report["provenance"]["data"]["sha256"] in text


def test_a_model_card_leaves_to_its_author_what_nobody_else_knows(card) -> None:
    for asked in ("Intended uses", "Training data", "Licence", "Known biases and risks"):
        (line,) = [line for line in card.splitlines() if line.startswith(f"- {asked}: ")]
        assert line.endswith("*[to be filled in by the model's author]*")


@pytest.mark.parametrize("form", ["html", "model-card"])
def test_what_is_not_there_is_refused_to_programs_and_people(service, form: str) -> None:
    for headers, kind in ((HTML, "text/html"), ({}, "application/problem+json")):
        for named, status in (("none", 404), ("digits&calibration=digits", 422)):
            address = f"/report?calibration={named}&format={form}"
            answer = service.client().get(address, headers=headers)
            assert answer.status_code == status
            assert answer.headers["content-type"].startswith(kind)
