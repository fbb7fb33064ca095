"""The page of the operating point: what each threshold would do, and a form that decides."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from keyed_service import KeyedService, keyed_service, logits_of
from page_numbers import at, numbers_of
from page_visitor import Visitor, elements

from service.errors import Overloaded
from service.reports import operating_points

OK, SEE_OTHER = httpx.codes.OK, httpx.codes.SEE_OTHER
CONFLICT, NOT_FOUND = httpx.codes.CONFLICT, httpx.codes.NOT_FOUND
UNPROCESSABLE, FORBIDDEN = httpx.codes.UNPROCESSABLE_ENTITY, httpx.codes.FORBIDDEN
WAIT = {"Prefer": "wait=60"}
HOSTILE = "<script>alert(1)</script> =1+1 \u05e9\u05dc\u05d5\u05dd &amp;"
SIGNED = {"author": HOSTILE, "reason": HOSTILE}
PAGE = "/pages/calibrations/{}/operating-point"
CHOICES = (
    {"by": "coverage", "coverage": "80", "volume": "10000", "unit": "\u202e" + HOSTILE[:30]},
    {"by": "risk", "risk": "5", "failing": "10"},
    {"by": "risk", "risk": "0.5"},
    {"by": "threshold", "threshold": "0.4"},
    {"by": "threshold", "threshold": "-1"},
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("operating"), first=False) as found:
        yield found


def samples(n: int = 600) -> bytes:
    """Return outputs of a model that errs where it is least sure, every other time."""
    lines = ["label,logit_0,logit_1,logit_2"]
    for row in range(n):
        sure = 0.01 * (row * 37 % n + 1)
        label = 1 if sure < 1.2 and row % 2 else 0
        lines.append(f"{label},{sure:.4f},0,0")
    return "\n".join(lines).encode()


@pytest.fixture(scope="module")
def calibration(service: KeyedService) -> str:
    files = [
        ("calibration", ("c.csv", samples())),
        ("config", (None, '{"name": "digits", "bins": 6}')),
    ]
    made = service.client().post("/calibrate", files=files, headers=WAIT)
    assert made.json()["status"] == "succeeded", made.text
    return str(made.json()["id"])


@pytest.fixture
def undecided(service: KeyedService, calibration: str) -> Iterator[str]:
    """Yield a version of which nothing was decided."""
    client = service.client()
    made = client.post(f"/calibrations/{calibration}/refit", json={"bins": 5}, headers=WAIT)
    assert made.json()["status"] == "succeeded", made.text
    yield made.json()["id"]
    assert client.delete(f"/calibrations/{made.json()['id']}").is_success


@pytest.fixture
def visitor(service: KeyedService) -> Visitor:
    return Visitor(service)


def save(visitor: Visitor, calibration: str, **fields: str) -> httpx.Response:
    """Send the form of the page that was opened last, as it is but for what is typed."""
    assert visitor.seen is not None
    hidden = {
        str(a["name"]): str(a["value"])
        for tag, a in elements(visitor.seen.text)
        if tag == "input" and a.get("form") == "save"
    }
    typed = hidden | {"form": "save", "name": "automatic"} | SIGNED | fields
    return visitor.send(PAGE.format(calibration) + "s", **typed)


def history(service: KeyedService, calibration: str) -> list[dict[str, Any]]:
    answer = service.client().get(f"/calibrations/{calibration}/operating-points")
    found: list[dict[str, Any]] = answer.json()["operating_points"]
    return found


def test_every_number_is_one_of_the_api(service, visitor, undecided) -> None:
    """What is previewed, what was decided and the curve: each says which JSON it is of."""
    visitor.open(PAGE.format(undecided) + "?by=coverage&coverage=60")
    assert save(visitor, undecided).status_code == SEE_OTHER
    client = service.client()
    report = f"/report?calibration={undecided}&format=json"
    sources: dict[str, Any] = {}
    paths = set()
    for chosen in CHOICES:
        query = str(httpx.QueryParams(chosen))
        for part, least in (("", 50), ("/outcome", 2)):
            shown = visitor.open(f"{PAGE.format(undecided)}{part}?{query}")
            assert shown.status_code == OK, shown.text
            found = numbers_of(shown.text, report)
            assert len(found) >= least
            for source, path, value in found:
                if source not in sources:
                    sources[source] = client.get(source).json()
                assert json.loads(value) == at(sources[source], path), (source, path)
                paths.add(re.sub(r"\d+", "0", path))
    assert len(sources) == 2 + len(CHOICES)
    assert {
        "/expected/volume",
        "/expected/accepted",
        "/expected/errors",
        "/expected/errors_interval/0",
        "/expected/reviewed",
        "/labels_missing",
        "/max_risk",
        "/delta",
        "/consequences/risk_interval/0",
        "/operating_points/0/threshold",
        "/operating_points/0/consequences/risk",
    } <= paths


def test_numbers_stand_nowhere_else_in_its_sentences(visitor, calibration) -> None:
    for chosen in CHOICES[:4]:
        page = visitor.open(f"{PAGE.format(calibration)}?{httpx.QueryParams(chosen)}").text
        text = re.sub(r'<span class="number".*?</span>', "", page).replace("Top-1", "")
        text = re.sub(r"<bdi>.*?</bdi>", "", text)
        told = re.findall(r'<(?:p class="(?:sentence|certificate)"|dd)>(.*?)</', text, re.DOTALL)
        assert told
        assert not [part for part in told if re.search(r"\d", part)]


def test_the_sentence_is_in_the_units_that_were_asked_for(service, visitor, calibration) -> None:
    chosen = {"by": "coverage", "coverage": "80", "volume": "20000", "unit": "letters"}
    page = visitor.open(f"{PAGE.format(calibration)}?{httpx.QueryParams(chosen)}").text
    sentence = re.sub(r"<[^>]+>", "", page[page.index('class="sentence"') :][:2000])
    address = f"/calibrations/{calibration}/operating-points/preview"
    asked = {"coverage": 0.8, "volume": 20_000}
    expected = service.client().get(address, params=asked).json()["expected"]
    ends = [f"{value:,.0f}" for value in expected["errors_interval"]]
    assert (
        f"Of 20,000 letters a day: {expected['accepted']:,.0f} automatic, about "
        f"{expected['errors']:,.0f} of them wrong ({ends[0]} to {ends[1]}), "
        f"{expected['reviewed']:,.0f} to review."
    ) in sentence


def test_the_certificate_or_what_it_lacks_is_said(visitor, calibration) -> None:
    def told(**chosen: str) -> str:
        page = visitor.open(f"{PAGE.format(calibration)}?{httpx.QueryParams(chosen)}").text
        found = re.search(r'<p class="certificate">(.*?)</p>', page, re.DOTALL)
        assert found
        return " ".join(re.sub(r"<[^>]+>", "", found[1]).split())

    certified = "Certified. At most 5.0 % of accepted answers are wrong"
    assert told(by="risk", risk="5").startswith(certified)
    assert re.search(r"About [\d,]+ more labelled samples", told(by="risk", risk="0.5"))
    seen = told(by="coverage", coverage="80")
    assert seen.startswith("Not certified")
    # By the rate that it names as much is certified.
    link = next(
        str(a["href"])
        for tag, a in elements(visitor.seen.text)
        if tag == "a" and "by=risk" in str(a.get("href")) and "coverage" not in str(a["href"])
    )
    assert visitor.open(link).text.count('<strong class="yes">') == 1


def test_the_mark_is_where_the_curve_is_drawn(service, visitor, calibration) -> None:
    """At a point that Vega draws as well, it lies on what Vega drew."""
    report = service.client().get(f"/report?calibration={calibration}&format=json").json()
    event = report["events"]["1"]
    target = next(
        found
        for found in event["measures"][event["served"]]["selective"]
        if found["threshold"] is not None
    )
    chosen = {
        "by": "risk",
        "risk": str(100 * target["target"]["max_risk"]),
        "failing": str(100 * target["target"]["delta"]),
    }
    page = visitor.open(f"{PAGE.format(calibration)}?{httpx.QueryParams(chosen)}").text
    picture = page[page.index("<svg") : page.index("</svg>")]

    def translated(pattern: str) -> list[float]:
        found = re.search(pattern, picture)
        assert found, pattern
        return [float(number) for number in found.groups()]

    frame = translated(
        r'data-most="[^"]*" transform="translate\(([\d.]+) ([\d.]+)\) scale\(([\d.]+) (-[\d.]+)\)"'
    )
    x, y = translated(r'class="point" transform="translate\(([\d.]+) ([\d.]+)\)"')
    words, left, top = translated(
        r'translate\(0,([\d.]+)\)"><g fill="none".*?translate\(([\d.]+),([\d.]+)\)'
    )
    # A diamond has four corners; its place is what it is moved by.
    diamond = translated(
        r'mark-symbol role-mark.*?<path transform="translate\(([\d.]+),([\d.]+)\)"'
    )
    assert frame[0] + x * frame[2] == pytest.approx(left + diamond[0], abs=0.6)
    assert frame[1] + y * frame[3] == pytest.approx(words + top + diamond[1], abs=0.6)


def test_a_form_decides_and_answers_are_held_against_it(service, visitor, undecided) -> None:
    client = service.client()
    logits = [[6, 0, 0], [1, 0, 0], [0, 0, 0]]

    def abstained() -> list[dict[str, Any]]:
        body = {"calibration": undecided, "logits": logits}
        return [p["abstain"] for p in client.post("/predict", json=body).json()["predictions"]]

    assert "automatic" not in abstained()[0]
    visitor.open(PAGE.format(undecided) + "?by=coverage&coverage=50&volume=7&unit=letters")
    answer = save(visitor, undecided)
    assert answer.status_code == SEE_OTHER
    shown = visitor.open(answer.headers["location"]).text
    assert "In force: automatic" in shown
    assert 'value="letters"' in shown
    (point,) = history(service, undecided)
    assert point["chosen_by"] == {"coverage": 0.5}
    assert (point["name"], point["author"], point["reason"]) == ("automatic", HOSTILE, HOSTILE)
    assert [found["automatic"] for found in abstained()] == [False, True, True]
    # What is in force is what the page begins with.
    first = elements(visitor.open(PAGE.format(undecided)).text)
    checked = [a["value"] for tag, a in first if tag == "input" and "checked" in a]
    assert checked == ["coverage"]

    answer = visitor.send(PAGE.format(undecided) + "s/withdraw", form="withdraw", **SIGNED)
    assert answer.status_code == SEE_OTHER
    assert "automatic" not in abstained()[0]
    assert "No operating point is active" in visitor.open(answer.headers["location"]).text
    rows = client.get("/audit", params={"subject": undecided}).json()["entries"]
    said = [(row["action"], row["via"], row["result"]) for row in rows]
    assert said[:2] == [("withdraw", "page", "accepted"), ("put-in-force", "page", "accepted")]


def test_what_is_refused_is_said_above_the_form_and_nothing_typed_is_lost(
    service, visitor, undecided
) -> None:
    page = PAGE.format(undecided)
    for chosen, fields, said in (
        ("by=coverage&coverage=50", {"name": "No Name"}, "name"),
        ("by=coverage&coverage=50", {"reason": " "}, "reason"),
        ("by=coverage&coverage=50", {"coverage": "many"}, "coverage"),
    ):
        visitor.open(f"{page}?{chosen}")
        answer = save(visitor, undecided, **fields)
        assert answer.status_code == UNPROCESSABLE
        assert re.search(rf"<code>(body\.)?{said}</code>", answer.text)
        assert "&lt;script&gt;alert(1)" in answer.text
    visitor.open(f"{page}?by=risk&risk=0.5")
    answer = save(visitor, undecided, by="risk", risk="0.5")
    assert answer.status_code == UNPROCESSABLE
    assert "labelled samples or choose a larger risk" in answer.text
    visitor.open(page)
    answer = visitor.send(page + "s/withdraw", form="withdraw", **SIGNED)
    assert answer.status_code == CONFLICT
    assert "no operating point in force" in answer.text
    assert history(service, undecided) == []


def test_a_long_reason_in_any_letters_is_taken(service, visitor, undecided) -> None:
    visitor.open(PAGE.format(undecided) + "?by=threshold&threshold=0.25")
    reason = "\N{CUNEIFORM SIGN A}" * 2000
    assert save(visitor, undecided, reason=reason).status_code == SEE_OTHER
    (point,) = history(service, undecided)
    assert (point["reason"], point["threshold"]) == (reason, 0.25)


def test_without_the_token_of_a_page_nothing_is_decided(service, visitor, undecided) -> None:
    visitor.open(PAGE.format(undecided))
    for what in ("", "/withdraw"):
        address = f"{PAGE.format(undecided)}s{what}"
        for token in ("", "x" * 43):
            form = {"csrf": token, "by": "coverage", "coverage": "5", "name": "a"} | SIGNED
            assert visitor.client.post(address, data=form).status_code == FORBIDDEN
    assert history(service, undecided) == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("by=coverage&coverage=800", "coverage"),
        ("by=coverage&coverage=many", "coverage"),
        ("by=risk&risk=", "max_risk"),
        ("by=risk&risk=NaN", "max_risk"),
        ("by=risk&risk=5&failing=1e999", "delta"),
        ("by=threshold&threshold=1e39", "threshold"),
        ("by=coverage&coverage=8&volume=0.5", "volume"),
    ],
)
def test_what_cannot_be_chosen_is_said_in_its_place(visitor, calibration, query, said) -> None:
    page = visitor.open(f"{PAGE.format(calibration)}?{query}")
    assert page.status_code == UNPROCESSABLE
    part = visitor.open(f"{PAGE.format(calibration)}/outcome?{query}")
    assert part.status_code == OK  # as what it says is the answer
    for text in (page.text, part.text):
        assert 'role="alert"' in text
        assert said in text[text.index('role="alert"') :]
        assert 'form="save"' not in text


def test_names_of_strangers_are_text(visitor, undecided) -> None:
    visitor.open(PAGE.format(undecided) + "?by=coverage&coverage=50")
    assert save(visitor, undecided, unit=HOSTILE).status_code == SEE_OTHER
    page = visitor.open(
        f"{PAGE.format(undecided)}?{httpx.QueryParams(CHOICES[0] | {'unit': HOSTILE})}"
    ).text
    assert "<script>alert" not in page
    assert page.count("<bdi>&lt;script&gt;alert(1)&lt;/script&gt; =1+1") == 5


def test_the_report_leads_there_and_its_file_does_not(visitor, calibration) -> None:
    link = f'<a href="{PAGE.format(calibration)}">Choose an operating point</a>'
    assert visitor.open(f"/report?calibration={calibration}").text.count(link) == 1
    assert link not in visitor.open(f"/report?calibration={calibration}&format=html").text


def test_what_is_not_there_is_not_there(visitor) -> None:
    for part in ("", "/outcome"):
        assert visitor.open(PAGE.format("none") + part).status_code == NOT_FOUND


def test_of_an_imported_one_a_threshold_is_all_that_can_be_chosen(
    service, visitor, calibration
) -> None:
    client = service.client()
    document = client.get(f"/calibrations/{calibration}/bins", params={"format": "json"}).json()
    made = client.post("/calibrations/import?name=imported", json=document).json()
    page = visitor.open(PAGE.format(made["id"]))
    assert page.status_code == OK, page.text
    assert "keeps no samples" in page.text
    assert save(visitor, made["id"]).status_code == SEE_OTHER
    assert history(service, made["id"])[0]["consequences"] is None
    assert visitor.open(PAGE.format(made["id"])).status_code == OK


def test_without_top_1_it_says_so(service, visitor) -> None:
    files = [
        ("calibration", ("c.csv", logits_of(n_classes=7, n=200))),
        ("config", (None, '{"name": "five", "top_k": [5], "measures": ["entropy"]}')),
    ]
    made = service.client().post("/calibrate", files=files, headers=WAIT).json()
    page = visitor.open(PAGE.format(made["id"]))
    assert page.status_code == CONFLICT
    assert "no Top-1 table" in page.text
    assert 'id="choose"' not in page.text


def test_who_may_only_read_sees_no_forms_that_decide(tmp_path) -> None:
    with keyed_service(tmp_path, first=False) as service:
        files = [("calibration", ("c.csv", samples()))]
        made = service.client().post("/calibrate", files=files, headers=WAIT).json()
        key = service.make("default", "read").text
    with keyed_service(tmp_path, first=False) as service:
        visitor = Visitor(service)
        visitor.sign_in(key)
        page = visitor.open(PAGE.format(made["id"]))
        assert page.status_code == OK
        assert 'id="choose"' in page.text
        assert 'method="post" id="' not in page.text
        answer = visitor.send(PAGE.format(made["id"]) + "s", by="coverage", coverage="5", name="a")
        assert answer.status_code == FORBIDDEN


def test_what_cannot_be_read_at_the_moment_is_said_on_a_page(
    service, calibration, monkeypatch
) -> None:
    def is_away(*_: object) -> None:
        raise Overloaded("The database does not answer.")

    monkeypatch.setattr(operating_points, "operating_points", is_away)
    answer = Visitor(service).open(PAGE.format(calibration))
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert "The database does not answer." in answer.text
