"""What holds for each page: its numbers are those of the JSON, names are text, errors are pages."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from markupsafe import escape
from model_services import HOSTILE
from page_visitor import HTML, assert_nothing_inline, elements, numbers_of, pointed_to
from report_scenarios import SCRIPT, activate, withdraw

from service.access.route_table import ROUTES

MOST_BYTES = 1_000_000
REPORT = "/report?calibration=pictures@1"
NAMES = ("pictures@1", "pictures@2", "scores", "imported")
COMPARISON = "/report?" + "&".join(f"calibration={name}" for name in NAMES)
PAGE = "/pages/calibrations/pictures@1"
# Addresses of pages and of the API, without their queries.
ADDRESSES = [
    re.compile(re.sub(r"\\\{\w+\\\}", "[^/?]+", re.escape(path)) + r"(\?.*)?") for _, path in ROUTES
]
ADDRESSES += [re.compile(r"/pages/static/.*|#.*|/docs.*|/openapi.json|data:image/png;base64,.*")]
POINT = f"{PAGE}/operating-point"
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
    return Page(
        f"{PAGE}/{query}", f"/calibrations/pictures@1/{query}&limit=24", ("/samples/*/row",)
    )


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
    *(f"/consequences/by_class/*/{kind}/share" for kind in ("named", "labelled")),
)
HISTORY = ("/operating_points/0/threshold", "/operating_points/0/consequences/risk")
PAGES = (
    Page(REPORT, REPORT, BINS),
    Page(f"{REPORT}&format=html", REPORT, BINS),
    Page(COMPARISON, COMPARISON, DIFFERENCES),
    Page(f"{PAGE}/measures", REPORT, SCORES),
    Page(f"{PAGE}/integrate"),
    Page(f"{PAGE}/try"),
    *(samples_page(kind, k) for kind in ("mislabelled", "surest_errors") for k in (1, 5)),
    Page(f"{POINT}?by=coverage&coverage=80&volume=10000&unit=<b>", shows=EXPECTATIONS),
    Page(f"{POINT}?by=risk&risk=5&failing=10", shows=("/max_risk", "/delta")),
    Page(f"{POINT}?by=risk&risk=0.05", shows=("/labels_missing",)),
    Page(f"{POINT}?by=threshold&threshold=0.4", shows=HISTORY),
    Page(f"{POINT}/outcome?by=threshold&threshold=-1&volume=9&unit={SCRIPT}"),
)
WITHOUT_NUMBERS = (f"{PAGE}/integrate", f"{PAGE}/try")


@pytest.fixture(scope="module")
def decided(client: httpx.Client, shelf) -> Iterator[httpx.Client]:
    """Yield a client after somebody with a strange name has decided on a threshold."""
    for name in ("pictures", "scores", "imported"):
        shelf(name)
    activate(client, "pictures@1", coverage=0.5, author=SCRIPT, reason=HOSTILE)
    yield client
    withdraw(client, "pictures@1")


@pytest.mark.parametrize("page", PAGES, ids=[page.address for page in PAGES])
def test_a_page(decided: httpx.Client, page: Page) -> None:
    answer = decided.get(page.address, headers=HTML)
    assert answer.status_code == httpx.codes.OK, answer.text
    assert len(answer.content) < MOST_BYTES
    check_markup(answer, is_whole="/outcome?" not in page.address)
    check_numbers(decided, page, answer.text)


def check_markup(page: httpx.Response, *, is_whole: bool) -> None:
    """A page has a heading, names are text, links lead somewhere, and nothing is inline."""
    assert_nothing_inline(page)
    assert SCRIPT not in page.text
    is_named = any(str(escape(name)) in page.text for name in (SCRIPT, HOSTILE))
    assert is_named or str(page.url).endswith("/try")
    tags = elements(page.text)
    is_file = "format=html" in str(page.url)
    assert [tag for tag, _ in tags].count("h1") == is_whole
    assert ("title" in {tag for tag, _ in tags}) or not is_whole
    assert not {"b", *([] if is_file else ["style"])} & {tag for tag, _ in tags}
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in tags:
        for name in ("href", "action", "src"):
            address = attributes.get(name)
            if address is None or tag in ("use", "path"):
                continue
            assert any(known.fullmatch(address) for known in ADDRESSES), address
            assert not address.startswith("#") or address[1:] in ids or not is_whole, address


def check_numbers(client: httpx.Client, page: Page, text: str) -> None:
    """Each number is one of the JSON, numbers stand nowhere else, and none is missing."""
    documents: dict[str, Any] = {}
    shown = set()
    for source, path, value in numbers_of(text, page.source):
        if source not in documents:
            documents[source] = client.get(source).json()
        number = pointed_to(documents[source], path)
        assert json.loads(value) == number, (source, path)
        assert isinstance(number, int | float | None)
        shown.add(path)
    assert shown or page.address in WITHOUT_NUMBERS
    known = {path for document in documents.values() for path in pointers(document)}
    events = documents.get(REPORT, {}).get("events", {})
    served = {f"top{k}": event["served"].replace("/", "~1") for k, event in events.items()}
    for pattern in page.shows:
        parts = pattern.format(**served).split("*")
        wanted = set(filter(re.compile("[^/]*".join(map(re.escape, parts))).fullmatch, known))
        assert wanted, pattern
        assert wanted <= shown
    # Tables behind figures repeat the figure's data, which the JSON has too.
    parts = PARTS.findall(re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL))
    assert parts or page.address in WITHOUT_NUMBERS
    assert [part for part in parts if re.search(r"\d", MARKED.sub("", part))] == []


TABS = ("measures", "integrate", "operating-point", "operating-point/outcome", "samples", "try")
FORMS = ("html", "model-card")
ERRORS = [
    ("/report", 422, "calibration"),
    ("/report?calibration=none", 404, "none"),
    ("/report?calibration=pictures&calibration=none", 404, "none"),
    ("/report?" + "&".join(["calibration=pictures"] * 21), 422, "at most 20"),
    *((f"/pages/calibrations/none/{tab}", 404, "none") for tab in TABS),
    *((f"/report?calibration=none&format={form}", 404, "none") for form in FORMS),
    *((f"{REPORT}&calibration=scores&format={form}", 422, "") for form in FORMS),
    (f"{PAGE}/samples?k=%2b1", 422, "k"),
    (f"{PAGE}/samples?kind=others", 422, "kind"),
    (f"{PAGE}/samples/600.png", 404, "600"),
    (f"{PAGE}/samples/x.png", 422, "row"),
    ("/pages/calibrations/scores/samples/0.png", 404, ""),
    ("/pages/calibrations/imported@1/samples", 409, "imported@1"),
]


@pytest.mark.parametrize(("address", "status", "text"), ERRORS)
def test_an_error_is_a_page(decided: httpx.Client, address: str, status: int, text: str) -> None:
    answer = decided.get(address, headers=HTML)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["x-request-id"] in answer.text
    assert text in answer.text
