"""All pages of a calibration: each number is one of the JSON, names are text, errors are pages."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from keyed_service import KeyedService
from markupsafe import escape
from model_services import HOSTILE
from page_visitor import HTML, elements, numbers_of, pointed_to

MOST_BYTES = 1_000_000
SCRIPT = "<script>alert(1)</script>"
REPORT = "/report?calibration=digits@1"
NAMES = ("digits@1", "digits@2", "scores", "moved")
COMPARISON = "/report?" + "&".join(f"calibration={name}" for name in NAMES)
PAGE = "/pages/calibrations/digits@1"
POINT = f"{PAGE}/operating-point"
SIGNED = {"name": "automatic", "author": SCRIPT, "reason": HOSTILE}
# Parts whose numbers are never written by hand.
PARTS = re.compile(
    r'<p class="(?:sentence|big|certificate)">.*?</p>|<td class="n">.*?</td>'
    r'|<ol class="samples">.*?</ol>|<dt>(?:Accepted|Wrong among them|Threshold)</dt><dd>.*?</dd>',
    re.DOTALL,
)
# Numbers of the JSON, names, addresses and times.
MARKED = re.compile(
    r'<span class="number".*?</span>|<bdi>.*?</bdi>|<a .*?</a>|<code>.*?</code>'
    r"|\d{4}-.* UTC|Top-\d|the label in \d|<[^>]*>",
    re.DOTALL,
)


def pointers(document: Any, path: str = "") -> Iterator[str]:
    """Yield a JSON pointer to each part of a document."""
    yield path
    parts = enumerate(document) if isinstance(document, list) else ()
    for name, part in document.items() if isinstance(document, dict) else parts:
        yield from pointers(part, f"{path}/{str(name).replace('/', '~1')}")


@dataclass(frozen=True)
class Page:
    """A page; the JSON of its numbers, if it names none; which numbers of it must be shown.

    In these ``*`` is any part of a JSON pointer.
    """

    address: str
    source: str = REPORT
    shows: tuple[str, ...] = ()


def samples_page(kind: str, k: int) -> Page:
    query = f"samples?kind={kind}&k={k}"
    return Page(f"{PAGE}/{query}", f"/calibrations/digits@1/{query}&limit=24", ("/samples/*/row",))


BINS = tuple(f"/events/{k}/measures/{{top{k}}}/bins/*/count" for k in (1, 5))
SCORES = (
    *(f"/events/*/{kind}/*/scores/nll/mean" for kind in ("measures", "baselines")),
    *(f"/events/*/{kind}/*/evaluation/nll" for kind in ("measures", "baselines")),
    "/events/*/comparison/*/passes",
    "/events/*/comparison/*/ms_per_row",
    "/events/*/oracle/scores/nll/mean",
    "/model_scores/calibration/passes/*/5/nll",
)
DIFFERENCES = (
    "/calibrations/*/events/*/figures/accuracy/value",
    "/comparisons/*/events/*/differences/*/mean",
)
EXPECTATIONS = (
    *(f"/expected/{name}" for name in ("volume", "accepted", "errors", "reviewed")),
    "/expected/errors_interval/0",
    "/consequences/risk_interval/0",
)
HISTORY = ("/operating_points/0/threshold", "/operating_points/0/consequences/risk")
PAGES = (
    Page(REPORT, REPORT, BINS),
    Page(f"{REPORT}&format=html", REPORT, BINS),
    Page(COMPARISON, COMPARISON, DIFFERENCES),
    Page(f"{PAGE}/measures", REPORT, SCORES),
    Page(f"{PAGE}/integrate"),
    *(samples_page(kind, k) for kind in ("mislabelled", "surest_errors") for k in (1, 5)),
    Page(f"{POINT}?by=coverage&coverage=80&volume=10000&unit=<b>", shows=EXPECTATIONS),
    Page(f"{POINT}?by=risk&risk=5&failing=10", shows=("/max_risk", "/delta")),
    Page(f"{POINT}?by=risk&risk=0.05", shows=("/labels_missing",)),
    Page(f"{POINT}?by=threshold&threshold=0.4", shows=HISTORY),
    Page(f"{POINT}/outcome?by=threshold&threshold=-1&volume=9&unit={SCRIPT}"),
)
EACH = pytest.mark.parametrize("page", PAGES, ids=[page.address for page in PAGES])


@pytest.fixture(scope="module")
def decided(service: KeyedService) -> KeyedService:
    """Return the service after somebody with a strange name has decided on a threshold."""
    address = "/calibrations/digits@1/operating-points"
    made = service.client().post(address, json=SIGNED | {"coverage": 0.5})
    assert made.status_code == httpx.codes.CREATED, made.text
    return service


def text_of_page(service: KeyedService, page: Page) -> str:
    answer = service.client().get(page.address, headers=HTML)
    assert answer.status_code == httpx.codes.OK, answer.text
    assert len(answer.content) < MOST_BYTES
    return answer.text


@EACH
def test_each_number_is_one_of_the_json(decided: KeyedService, page: Page) -> None:
    documents: dict[str, Any] = {}
    shown = set()
    for source, path, value in numbers_of(text_of_page(decided, page), page.source):
        if source not in documents:
            documents[source] = decided.client().get(source).json()
        found = pointed_to(documents[source], path)
        assert json.loads(value) == found, (source, path)
        assert isinstance(found, int | float | None)
        shown.add(path)
    assert shown
    known = {path for document in documents.values() for path in pointers(document)}
    events = documents.get(REPORT, {}).get("events", {})
    served = {f"top{k}": event["served"].replace("/", "~1") for k, event in events.items()}
    for pattern in page.shows:
        parts = pattern.format(**served).split("*")
        wanted = set(filter(re.compile("[^/]*".join(map(re.escape, parts))).fullmatch, known))
        assert wanted, pattern
        assert wanted <= shown


@EACH
def test_numbers_stand_nowhere_else(decided: KeyedService, page: Page) -> None:
    # Tables behind figures repeat the figure's data, which the JSON has too.
    text = re.sub(r"<details>.*?</details>", "", text_of_page(decided, page), flags=re.DOTALL)
    parts = PARTS.findall(text)
    assert parts or page.address.endswith("/integrate")
    assert [part for part in parts if re.search(r"\d", MARKED.sub("", part))] == []


@EACH
def test_names_of_strangers_are_text(decided: KeyedService, page: Page) -> None:
    text = text_of_page(decided, page)
    assert SCRIPT not in text
    assert "b" not in {tag for tag, _ in elements(text)}
    assert any(str(escape(name)) in text for name in (SCRIPT, HOSTILE))


@pytest.mark.parametrize(
    ("address", "status", "text"),
    [
        ("/report", 422, "choose one to read, or several to compare"),
        ("/report?calibration=none", 404, "none"),
        ("/report?calibration=digits&calibration=none", 404, "none"),
        ("/report?" + "&".join(["calibration=digits"] * 21), 422, "at most 20"),
        ("/pages/calibrations/none/measures", 404, "none"),
        ("/pages/calibrations/none/integrate", 404, "none"),
        ("/pages/calibrations/none/operating-point", 404, "none"),
        ("/pages/calibrations/none/operating-point/outcome", 404, "none"),
        ("/pages/calibrations/none/samples", 404, "none"),
        ("/pages/calibrations/none/try", 404, "none"),
        (f"{PAGE}/samples?k=%2b1", 422, "k"),
        (f"{PAGE}/samples?kind=others", 422, "kind"),
        (f"{PAGE}/samples/600.png", 404, "600"),
        (f"{PAGE}/samples/x.png", 422, "row"),
        ("/pages/calibrations/scores/samples/0.png", 404, ""),
        ("/pages/calibrations/moved/samples", 409, "keeps no records"),
    ],
)
def test_an_error_is_a_page(service: KeyedService, address: str, status: int, text: str) -> None:
    answer = service.client().get(address, headers=HTML)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["x-request-id"] in answer.text
    assert text in answer.text
