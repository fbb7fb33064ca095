"""The page of the operating point: what a threshold does, and the form that activates it."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from model_services import HOSTILE
from page_visitor import Visitor, elements, text_of
from report_scenarios import of_outputs, outputs
from running_service import refit

from howsure.numbers import share

OK, SEE_OTHER = httpx.codes.OK, httpx.codes.SEE_OTHER
CONFLICT, UNPROCESSABLE = httpx.codes.CONFLICT, httpx.codes.UNPROCESSABLE_ENTITY
SIGNED = {"author": HOSTILE, "reason": HOSTILE}
TABS = ("operating-point", "samples", "try", "measures", "integrate")
BANNER = 'class="banner"'


def address(calibration: str, **choice: Any) -> str:
    query = f"?{httpx.QueryParams(choice)}" if choice else ""
    return f"/pages/calibrations/{calibration}/operating-point{query}"


def save(visitor: Visitor, calibration: str, **fields: str) -> httpx.Response:
    """Send the form of the page that was opened last, as it is but for what is typed."""
    assert visitor.seen is not None
    inputs = [a for tag, a in elements(visitor.seen.text) if tag == "input"]
    hidden = {str(a["name"]): str(a["value"]) for a in inputs if a.get("form") == "save"}
    typed = {"form": "save", "name": "automatic", "despite": "yes"} | SIGNED | fields
    return visitor.send(address(calibration) + "s", **hidden | typed)


def withdraw(visitor: Visitor, calibration: str) -> httpx.Response:
    return visitor.send(address(calibration) + "s/withdraw", form="withdraw", **SIGNED)


def history(client: httpx.Client, calibration: str) -> list[dict[str, Any]]:
    """Return the decisions, newest first."""
    return client.get(f"/calibrations/{calibration}/operating-points").json()["operating_points"]


@pytest.fixture(scope="module")
def calibration(client: httpx.Client) -> str:
    return of_outputs(outputs(600, seed=31), bins=6)(client, "point")["id"]


@pytest.fixture
def undecided(client: httpx.Client, calibration: str) -> Iterator[str]:
    """Yield a version of which nothing was decided."""
    made = refit(client, calibration, bins=5).json()
    assert made["status"] == "succeeded"
    yield made["id"]
    assert client.delete(f"/calibrations/{made['id']}").is_success


@pytest.mark.parametrize("rate", [0.0155, 0.02549, 0.10449])
def test_a_promised_rate_is_written_as_it_was_entered(rate: float) -> None:
    assert share(rate) == f"{round(100 * rate, 6):g} %"


@pytest.mark.parametrize("coverage", ["35", "97"])
def test_the_proposed_error_rate_is_in_the_field_and_passes(visitor, calibration, coverage) -> None:
    page = visitor.open(address(calibration, by="coverage", coverage=coverage)).text
    links = [str(a["href"]) for tag, a in elements(page) if tag == "a" and "by=risk" in str(a)]
    (proposed,) = [link for link in links if "coverage" not in link]
    field = next(a for tag, a in elements(page) if tag == "input" and a.get("name") == "risk")
    assert httpx.URL(proposed).params["risk"] == field["value"]
    assert visitor.open(proposed).text.count('<strong class="yes">') == 1


def test_the_mark_is_where_the_curve_is_drawn(client, visitor, shelf) -> None:
    """The mark lies on the diamond of a target of the config."""
    calibration = shelf("rare-errors")["id"]
    event = client.get(f"/report?calibration={calibration}").json()["events"]["1"]
    selective = event["measures"][event["served"]]["selective"]
    target = next(one["target"] for one in selective if one["threshold"] is not None)
    chosen = {"risk": 100 * target["max_risk"], "failing": 100 * target["delta"]}
    page = visitor.open(address(calibration, by="risk", **chosen)).text
    picture = page[page.index("<svg") : page.index("</svg>")]

    frame, point = (
        [float(number) for number in re.search(pattern, picture).groups()]
        for pattern in (
            r'transform="translate\(([\d.]+) ([\d.]+)\) scale\(([\d.]+) (-[\d.]+)\)"',
            r'class="point" transform="translate\(([\d.]+) ([\d.]+)\)"',
        )
    )
    (corners,) = re.findall(r'd="M([^"]*)Z" fill="var\(--chart-ink\)"', picture)[:1]
    diamond = [[float(number) for number in corner.split()] for corner in corners.split("L")]
    left, top = (sum(place) / len(diamond) for place in zip(*diamond, strict=True))
    assert frame[0] + point[0] * frame[2] == pytest.approx(left, abs=0.6)
    assert frame[1] + point[1] * frame[3] == pytest.approx(top, abs=0.6)


def test_the_form_activates_and_withdraws_an_operating_point(client, visitor, undecided) -> None:
    def abstained() -> list[bool | None]:
        body = {"calibration": undecided, "logits": [[6, 0, 0], [1, 0, 0], [0, 0, 0]]}
        rows = client.post("/predict", json=body).json()["predictions"]
        return [row["abstain"].get("automatic") for row in rows]

    assert abstained() == [None] * 3
    visitor.open(address(undecided, by="coverage", coverage=50, volume=7, unit="letters"))
    answer = save(visitor, undecided)
    assert answer.status_code == SEE_OTHER
    page = visitor.open(answer.headers["location"]).text
    assert "Active: automatic</h2>" in page
    assert 'value="letters"' in page
    (point,) = history(client, undecided)
    assert point.items() >= ({"chosen_by": {"coverage": 0.5}, "name": "automatic"} | SIGNED).items()
    assert abstained() == [False, True, True]
    # The page begins with the active operating point.
    first = elements(visitor.open(address(undecided)).text)
    checked = [a["value"] for tag, a in first if tag == "input" and "checked" in a]
    assert checked == ["coverage"]

    answer = withdraw(visitor, undecided)
    assert answer.status_code == SEE_OTHER
    assert abstained() == [None] * 3
    assert "Active: " not in visitor.open(answer.headers["location"]).text
    assert withdraw(visitor, undecided).status_code == CONFLICT


def test_a_long_reason_in_any_letters_and_a_rate_are_kept(client, visitor, undecided) -> None:
    visitor.open(address(undecided, by="risk", risk=15.549, failing=7))
    reason = "\N{CUNEIFORM SIGN A}" * 2000
    assert save(visitor, undecided, reason=reason).status_code == SEE_OTHER
    (point,) = history(client, undecided)
    assert point["reason"] == reason
    assert point["chosen_by"] == {"max_risk": 0.15549, "delta": 0.07}
    for path in (address(undecided), f"/report?calibration={undecided}&format=html"):
        assert "at most 15.549 %" in text_of(visitor.open(path).text)


HALF, STRICT = {"by": "coverage", "coverage": "50"}, {"by": "risk", "risk": "0.5"}


TYPED = [
    (HALF, {"name": "No Name"}, "Name"),
    (HALF, {"reason": " "}, "Reason"),
    (HALF, {"reason": ""}, "Reason"),
    (HALF, {"coverage": "many"}, "share to accept"),
    (STRICT, STRICT, "largest error rate"),
]


@pytest.mark.parametrize(("choice", "fields", "label"), TYPED)
def test_errors_keep_what_was_typed(client, visitor, calibration, choice, fields, label) -> None:
    visitor.open(address(calibration, **choice))
    answer = save(visitor, calibration, **fields)
    assert answer.status_code == UNPROCESSABLE
    assert f"<strong>{label}:</strong>" in answer.text
    assert "&lt;b&gt;it" in answer.text
    assert history(client, calibration) == []


INVALID_CHOICES = [
    ("by=coverage&coverage=800", "share to accept"),
    ("by=coverage&coverage=many", "share to accept"),
    ("by=risk&risk=", "largest error rate"),
    ("by=risk&risk=0", "largest error rate"),
    ("by=risk&risk=NaN", "largest error rate"),
    ("by=risk&risk=5&failing=1e999", "Fails for at most"),
    ("by=threshold&threshold=1e39", "largest uncertainty or smallest score"),
    ("by=coverage&coverage=8&volume=0.5", "Answers a day"),
]


@pytest.mark.parametrize(("query", "label"), INVALID_CHOICES)
def test_an_invalid_choice_replaces_the_outcome(visitor, calibration, query, label) -> None:
    # The script of the page shows the part as it is, and so it is no failure.
    for part, status in (("", UNPROCESSABLE), ("/outcome", OK)):
        page = visitor.open(f"{address(calibration)}{part}?{query}")
        assert page.status_code == status
        alert = page.text.partition('role="alert">')[2]
        assert text_of(alert).strip().startswith(f"{label}: expected ")
        assert 'form="save"' not in page.text


def test_an_address_with_names_of_the_api_is_not_understood(visitor, calibration) -> None:
    def unread(**choice: Any) -> bool:
        return 'class="refused"' in visitor.open(address(calibration, **choice)).text

    assert unread(by="max_risk", max_risk=5)
    assert not unread(by="risk", risk=5)
    assert not unread()


@pytest.mark.parametrize("name", ["rare-errors", "wrong-labels", "contradicted", "shifted"])
def test_reasons_against_a_calibration_must_be_confirmed(client, visitor, shelf, name) -> None:
    """On all tabs, in comparisons, and in the decision."""
    is_fit = name == "rare-errors"
    for tab in TABS if name in ("rare-errors", "contradicted") else ("operating-point",):
        page = visitor.open(f"/pages/calibrations/{shelf(name)['id']}/{tab}").text
        assert (BANNER in page) != is_fit, tab
    compared = visitor.open(f"/report?calibration={name}&calibration={name}").text
    assert compared.count('<p class="refused">') == (0 if is_fit else 2)
    # Further sets are of the first version alone.
    made = shelf(name) if name == "shifted" else refit(client, name, bins=4).json()
    visitor.open(address(made["id"], by="coverage", coverage=50))
    assert ('name="despite"' in visitor.seen.text) != is_fit
    answer = save(visitor, made["id"], despite="")
    assert answer.status_code == (SEE_OTHER if is_fit else UNPROCESSABLE)
    if not is_fit:
        assert history(client, made["id"]) == []
        assert save(visitor, made["id"]).status_code == SEE_OTHER
    # The decision keeps what was known, and a withdrawal does not remove it.
    (point,) = history(client, made["id"])
    warnings = point["consequences"]["activated_despite"]
    assert bool(point["warnings"]) == bool(warnings) != is_fit
    page = visitor.open(f"{address(made['id'])}").text.partition('id="history-title"')[2]
    assert all(warning in text_of(page).replace("&#39;", "'") for warning in warnings)
    withdraw(visitor, made["id"])
    assert history(client, made["id"])[1]["consequences"] == point["consequences"]
    if name != "shifted":
        client.delete(f"/calibrations/{made['id']}").raise_for_status()
