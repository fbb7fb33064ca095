"""The page of the operating point: what a threshold does, and the form that activates it."""

import io
import re

import httpx
import numpy as np
import pytest
from keyed_service import logits_of
from operating_point_page import SIGNED, address, history, save
from page_visitor import elements, text_of
from running_service import calibrated, evaluate, npz, refit
from scipy.stats import binomtest

from service.errors import Overloaded
from service.reports import operating_points

OK, SEE_OTHER = httpx.codes.OK, httpx.codes.SEE_OTHER
CONFLICT, UNPROCESSABLE = httpx.codes.CONFLICT, httpx.codes.UNPROCESSABLE_ENTITY


def test_the_sentence_counts_in_the_chosen_unit(service, visitor, calibration) -> None:
    chosen = {"by": "coverage", "coverage": "80", "volume": "200000", "unit": "letters"}
    page = visitor.open(address(calibration, **chosen)).text
    preview = f"/calibrations/{calibration}/operating-points/preview"
    asked = {"coverage": 0.8, "volume": 200_000}
    expected = service.client().get(preview, params=asked).json()["expected"]
    ends = [f"{value:,.0f}" for value in expected["errors_interval"]]
    assert (
        f"Of 200,000 letters a day: {expected['accepted']:,.0f} automatic, about "
        f"{expected['errors']:,.0f} of them wrong ({ends[0]} to {ends[1]}), "
        f"{expected['reviewed']:,.0f} to review, by the calibration set."
    ) in text_of(page)


@pytest.mark.parametrize(
    ("measure", "known"),
    [("learned", "Estimated with cross-fitting. At"), ("entropy", "Certified. At")],
)
def test_the_page_says_how_the_error_rate_is_known_or_what_is_missing(
    service, visitor, calibration, measure, known
) -> None:
    made = refit(service.client(), calibration, serve={"1": measure}).json()

    def told(**chosen: str) -> str:
        page = visitor.open(address(made["id"], **chosen)).text
        found = re.search(r'<p class="certificate">(.*?)</p>', page, re.DOTALL)
        return " ".join(text_of(found[1]).split())

    assert told(by="risk", risk="5").startswith(f"{known} most 5 % of accepted answers are wrong")
    assert ("values of the learned measure from other folds" in visitor.seen.text) == (
        measure == "learned"
    )
    assert re.search(r"Add about [\d,]+ labelled samples", told(by="risk", risk="0.5"))
    assert told(by="coverage", coverage="80").startswith("Not tested")
    # A link leads to the rate that passes the test and accepts as much.
    link = next(
        str(a["href"])
        for tag, a in elements(visitor.seen.text)
        if tag == "a" and "by=risk" in str(a.get("href")) and "coverage" not in str(a["href"])
    )
    assert visitor.open(link).text.count('<strong class="yes">') == 1
    report = visitor.open(f"/report?calibration={made['id']}").text
    assert f"{known[:-4]}: at most" in report
    for form in ("html", "markdown", "model-card", "json"):
        written = visitor.open(f"/report?calibration={made['id']}&format={form}").text.lower()
        if form in ("html", "markdown"):
            assert ("estimated with cross-fitting" in written) == (measure == "learned"), form
        assert not (measure == "learned" and "certified" in written), form


@pytest.mark.parametrize("shift", [0, 1])
def test_a_calibration_with_warnings_says_so_before_anything_else(service, visitor, shift) -> None:
    """Labels that are moved by one give a warning."""
    rng = np.random.default_rng(1)
    logits = 3 * rng.normal(size=(600, 4))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    content = npz(logits=logits, labels=(labels + shift) % 4)
    made = calibrated(service.client(), {"name": f"moved-{shift}"}, calibration=content)
    text = text_of(visitor.open(address(made["id"])).text)
    before = text[: text.index("No operating point is active")]
    assert ("Do not use this calibration yet" in before) == bool(shift)
    assert ("Fix the findings first" in before) == bool(shift)
    for tab in ("samples", "try", "measures", "integrate"):
        told = text_of(visitor.open(f"/pages/calibrations/{made['id']}/{tab}").text)
        assert ("Do not use this calibration yet" in told) == bool(shift), tab
    # Whoever activates an operating point confirms that the warning was read.
    visitor.open(address(made["id"], by="coverage", coverage=80))
    assert ("Activate despite the warning" in visitor.seen.text) == bool(shift)
    answer = save(visitor, made["id"], despite="")
    assert answer.status_code == (UNPROCESSABLE if shift else SEE_OTHER)
    if shift:
        assert history(service, made["id"]) == []
        assert "confirm that you have read the warning" in answer.text
        assert save(visitor, made["id"]).status_code == SEE_OTHER
    (point,) = history(service, made["id"])
    assert bool(point["warnings"]) == bool(shift)
    # The decision keeps what was known, and a withdrawal does not remove it.
    despite = point["consequences"]["activated_despite"]
    assert [said[:30] for said in despite[:1]] == ["Do not use this calibration ye"] * shift
    visitor.send(address(made["id"]) + "s/withdraw", form="withdraw", **SIGNED)
    assert history(service, made["id"])[1]["consequences"] == point["consequences"]
    decisions = text_of(visitor.open(address(made["id"])).text).partition("Decisions")[2]
    assert ("Activated despite the warning: Do not use" in decisions) == bool(shift)


def test_an_address_that_is_not_understood_says_so(visitor, calibration) -> None:
    """As one with the names of the API."""
    told = "This address chooses by max_risk. The page knows ?by=risk"
    assert told in text_of(visitor.open(address(calibration, by="max_risk", max_risk=5)).text)
    assert "This address chooses" not in visitor.open(address(calibration, by="risk", risk=5)).text
    assert "This address chooses" not in visitor.open(address(calibration)).text


def test_groups_are_told_where_an_error_rate_is_chosen(service, visitor) -> None:
    rng = np.random.default_rng(3)
    logits = np.repeat(6 * rng.normal(size=(400, 3)), 2, axis=0) + rng.normal(size=(800, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    groups = np.repeat(np.arange(400), 2)
    content = npz(logits=logits, labels=labels, group=groups)
    config = {"name": "grouped", "selective": [{"max_risk": 0.1}]}
    made = calibrated(service.client(), config, calibration=content)
    page = text_of(visitor.open(address(made["id"], by="risk", risk=10)).text)
    assert "with about 95 % confidence, on data like the calibration set." in page
    assert "The test estimates how much the group of samples reduces what they prove" in page
    report = text_of(visitor.open(f"/report?calibration={made['id']}").text)
    assert report.count("about 95 % confidence") >= 2
    assert "counted as one" not in report
    preview = f"/calibrations/{made['id']}/operating-points/preview"
    answer = service.client().get(preview, params={"max_risk": 0.1}).json()
    assert answer["design"] == ["group"]
    seen = answer["consequences"]
    accepted = seen["n_accepted"]
    n_groups, n_effective = seen["effective"]["n_groups"], seen["effective"]["n_effective"]
    assert accepted / 2 <= n_groups <= n_effective <= accepted
    lower, upper = binomtest(seen["n_errors"], accepted).proportion_ci(0.95)
    assert seen["risk_interval"][0] < lower < upper < seen["risk_interval"][1]


def later_set(rng: np.random.Generator, *, n: int) -> bytes:
    """Answers as certain as those of a calibrated set, of which one in twelve more is wrong."""
    logits = 4 * rng.normal(size=(n, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    answers = logits.argmax(axis=1)
    return npz(logits=logits, labels=np.where(rng.random(n) < 1 / 12, (answers + 1) % 3, labels))


@pytest.mark.parametrize("is_first", [True, False])
def test_an_active_operating_point_is_judged_on_further_sets(service, visitor, is_first) -> None:
    """At a rate that the configuration does not have, activated before the set or after it."""
    rng = np.random.default_rng(5)
    logits = 4 * rng.normal(size=(2000, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    client, name = service.client(), f"later-{is_first}"
    config = {"name": name, "selective": [{"max_risk": 0.001}]}
    made = calibrated(client, config, calibration=npz(logits=logits, labels=labels))
    points = f"/calibrations/{made['id']}/operating-points"
    asked = {"name": "auto", "max_risk": 0.05, **SIGNED}
    if is_first:
        assert client.post(points, json=asked).json()["warnings"] == []
    content = later_set(rng, n=1500)
    assert evaluate(client, name, "december", content).json()["status"] == "succeeded"
    if not is_first:
        (warning,) = client.post(points, json=asked).json()["warnings"]
        assert warning.startswith("Do not use for data like “december”")
    found = np.load(io.BytesIO(content))
    answers = client.post(
        "/predict", json={"calibration": name, "logits": found["logits"].tolist()}
    ).json()["predictions"]
    kept = [one["abstain"]["auto"] is False for one in answers]
    wrong = found["logits"].argmax(axis=1) != found["labels"]
    said = f"{wrong[kept].sum()} of {sum(kept):,} "
    report = client.get("/report", params={"calibration": name}).json()
    assert report["summary"]["status"] == "shifted"
    (accepted,) = report["evaluations"][0]["events"]["1"]["accepted"]
    assert (accepted["n_errors"], accepted["n_accepted"]) == (wrong[kept].sum(), sum(kept))
    page = text_of(visitor.open(f"/report?calibration={made['id']}").text)
    assert "Accepted, at most 5 % wrong" in page
    markdown = visitor.open(f"/report?calibration={made['id']}&format=markdown").text
    assert said in markdown
    assert client.post(f"{points}/withdraw", json=SIGNED).is_success
    report = client.get("/report", params={"calibration": name}).json()
    assert report["evaluations"][0]["events"]["1"]["accepted"] == []


@pytest.mark.parametrize("is_first", [True, False])
def test_a_point_without_an_error_rate_is_counted_on_further_sets(
    service, visitor, is_first
) -> None:
    """A share promises nothing, so its counts disprove nothing."""
    rng = np.random.default_rng(7)
    client, name = service.client(), f"share-{is_first}"
    made = calibrated(client, {"name": name}, calibration=later_set(rng, n=2000))
    points = f"/calibrations/{made['id']}/operating-points"
    asked = {"name": "by-share", "coverage": 0.7, **SIGNED}
    if is_first:
        client.post(points, json=asked).raise_for_status()
    content = later_set(rng, n=500)
    evaluate(client, name, "january", content)
    if not is_first:
        client.post(points, json=asked).raise_for_status()
    found = np.load(io.BytesIO(content))
    answers = client.post(
        "/predict", json={"calibration": name, "logits": found["logits"].tolist()}
    ).json()["predictions"]
    kept = [not one["abstain"]["by-share"] for one in answers]
    wrong = (found["logits"].argmax(axis=1) != found["labels"])[kept].sum()
    report = client.get("/report", params={"calibration": name}).json()
    event = report["evaluations"][0]["events"]["1"]
    counted = event["unpromised"]
    assert (counted["n_errors"], counted["n_accepted"]) == (wrong, sum(kept))
    assert counted["operating_point"] == "by-share"
    assert counted["target"] == {"coverage": 0.7}
    assert counted["risk_interval"][0] < counted["risk"] < counted["risk_interval"][1]
    assert "by-share" not in [one.get("operating_point") for one in event["accepted"]]
    said = f"{wrong} of {sum(kept)} are wrong"
    (sentence,) = [one for one in report["summary"]["sentences"] if said in one]
    assert sentence.startswith("On the further set “january”, “by-share” accepts ")
    page = text_of(visitor.open(f"/report?calibration={made['id']}").text)
    assert "Accepted by by-share" in page
    assert "“by-share”, the active operating point, accepts 70.0\u00a0%; " in page
    assert said in client.get(f"/report?calibration={made['id']}&format=markdown").text
    client.post(f"{points}/withdraw", json=SIGNED).raise_for_status()
    report = client.get("/report", params={"calibration": name}).json()
    assert report["evaluations"][0]["events"]["1"]["unpromised"] is None


def test_a_point_at_a_requested_error_rate_is_counted_once(service) -> None:
    rng = np.random.default_rng(6)
    client, config = service.client(), {"name": "once", "selective": [{"max_risk": 0.2}]}
    made = calibrated(client, config, calibration=later_set(rng, n=2000))
    asked = {"name": "auto", "max_risk": 0.2, **SIGNED}
    client.post(f"/calibrations/{made['id']}/operating-points", json=asked).raise_for_status()
    result = evaluate(client, "once", "later", later_set(rng, n=500)).json()["result"]
    (counted,) = result["events"]["1"]["accepted"]
    assert counted["n_accepted"] > 0


def test_an_evaluation_set_that_contradicts_the_promise_is_told_everywhere(
    service, visitor
) -> None:
    """Also where another rate is chosen: in tabs, in a comparison, by the API."""
    rng = np.random.default_rng(2)
    logits = 4 * rng.normal(size=(2000, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    # As accurate as the calibration set, but certain answers are wrong more often.
    answers, sizes = logits[1000:].argmax(axis=1), np.sort(logits[1000:], axis=1)
    is_certain = sizes[:, 2] - sizes[:, 1] > 3
    evaluated = np.where(is_certain | (rng.random(1000) < 0.4), labels[1000:], answers)
    evaluated = np.where(is_certain & (rng.random(1000) < 0.1), 2 - answers // 2, evaluated)
    made = calibrated(
        service.client(),
        {"name": "contradicted", "selective": [{"max_risk": 0.05}]},
        calibration=npz(logits=logits[:1000], labels=labels[:1000]),
        evaluation=npz(logits=logits[1000:], labels=evaluated),
    )
    assert [one for one in made["findings"] if one["level"] == "warning"] == []
    said = "Not fit for automatic use: on the evaluation set, "
    for tab in ("operating-point", "samples", "try", "measures", "integrate"):
        told = text_of(visitor.open(f"/pages/calibrations/{made['id']}/{tab}").text)
        assert said in told, tab
    compared = visitor.open(f"/report?calibration={made['id']}&calibration={made['id']}").text
    assert text_of(compared).count(said) == 2
    assert (
        "more than promised"
        not in visitor.open(address(made["id"], by="coverage", coverage=80)).text
    )
    page = visitor.open(address(made["id"], by="risk", risk=5)).text
    assert ", clearly more than promised" in text_of(page)
    assert "Activate despite the warning" in page
    assert save(visitor, made["id"], despite="").status_code == UNPROCESSABLE
    assert save(visitor, made["id"]).status_code == SEE_OTHER
    (point,) = history(service, made["id"])
    (warning,) = point["warnings"]
    assert "with the active operating point “automatic”: on the evaluation set, " in warning


def test_the_mark_is_where_the_curve_is_drawn(service, visitor, calibration) -> None:
    """The mark lies on the diamond that Vega draws for a target of the config."""
    report = service.client().get(f"/report?calibration={calibration}&format=json").json()
    event = report["events"]["1"]
    selective = event["measures"][event["served"]]["selective"]
    target = next(found["target"] for found in selective if found["threshold"] is not None)
    chosen = {"risk": 100 * target["max_risk"], "failing": 100 * target["delta"]}
    page = visitor.open(address(calibration, by="risk", **chosen)).text
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
    diamond = translated(
        r'mark-symbol role-mark.*?<path transform="translate\(([\d.]+),([\d.]+)\)"'
    )
    assert frame[0] + x * frame[2] == pytest.approx(left + diamond[0], abs=0.6)
    assert frame[1] + y * frame[3] == pytest.approx(words + top + diamond[1], abs=0.6)


def test_the_form_activates_and_withdraws_an_operating_point(service, visitor, undecided) -> None:
    client = service.client()

    def abstained() -> list[bool | None]:
        body = {"calibration": undecided, "logits": [[6, 0, 0], [1, 0, 0], [0, 0, 0]]}
        found = client.post("/predict", json=body).json()["predictions"]
        return [one["abstain"].get("automatic") for one in found]

    assert abstained() == [None] * 3
    visitor.open(address(undecided, by="coverage", coverage=50, volume=7, unit="letters"))
    answer = save(visitor, undecided)
    assert answer.status_code == SEE_OTHER
    shown = visitor.open(answer.headers["location"]).text
    assert "Active: automatic" in shown
    assert 'value="letters"' in shown
    (point,) = history(service, undecided)
    decided = {"chosen_by": {"coverage": 0.5}, "name": "automatic"} | SIGNED
    assert point.items() >= decided.items()
    assert abstained() == [False, True, True]
    # The report's error rate of accepted answers is that of the active operating point.
    report = text_of(visitor.open(f"/report?calibration={undecided}").text)
    seen = point["consequences"]
    assert "Active operating point automatic, not tested. Calibration set: " in report
    assert f"{seen['n_errors']} of {seen['n_accepted']} accepted answers (" in report
    # The page begins with what is in force.
    first = elements(visitor.open(address(undecided)).text)
    checked = [a["value"] for tag, a in first if tag == "input" and "checked" in a]
    assert checked == ["coverage"]

    answer = visitor.send(address(undecided) + "s/withdraw", form="withdraw", **SIGNED)
    assert answer.status_code == SEE_OTHER
    assert abstained() == [None] * 3
    assert "No operating point is active" in visitor.open(answer.headers["location"]).text


HALF = {"by": "coverage", "coverage": "50"}
STRICT = {"by": "risk", "risk": "0.5"}


@pytest.mark.parametrize(
    ("chosen", "fields", "said"),
    [
        (HALF, {"name": "No Name"}, "<strong>Name:</strong> expected a lowercase letter"),
        (HALF, {"reason": " "}, "<strong>Reason:</strong> expected 1 to 2000 printable"),
        (HALF, {"reason": ""}, "<strong>Reason:</strong> expected 1 to 2000 printable"),
        (HALF, {"coverage": "many"}, "<strong>share to accept:</strong> expected a percentage"),
        (
            STRICT,
            STRICT,
            "<strong>largest error rate:</strong> No threshold passes the test for an",
        ),
        (STRICT, STRICT, "error rate of at most 0.5&nbsp;% with 95&nbsp;% confidence on this"),
        (
            STRICT,
            STRICT,
            "labelled samples like these, better twice as many, or choose a larger error",
        ),
    ],
)
def test_errors_are_shown_above_the_form_and_keep_what_was_typed(
    service, visitor, undecided, chosen, fields, said
) -> None:
    visitor.open(address(undecided, **chosen))
    answer = save(visitor, undecided, **fields)
    assert answer.status_code == UNPROCESSABLE
    assert re.search(said, answer.text)
    assert "&lt;b&gt;it" in answer.text
    assert history(service, undecided) == []


def test_without_an_active_operating_point_none_can_be_withdrawn(visitor, undecided) -> None:
    visitor.open(address(undecided))
    answer = visitor.send(address(undecided) + "s/withdraw", form="withdraw", **SIGNED)
    assert answer.status_code == CONFLICT
    assert "no active operating point" in answer.text


def test_a_long_reason_in_any_letters_is_accepted(service, visitor, undecided) -> None:
    visitor.open(address(undecided, by="threshold", threshold=0.25))
    reason = "\N{CUNEIFORM SIGN A}" * 2000
    assert save(visitor, undecided, reason=reason).status_code == SEE_OTHER
    (point,) = history(service, undecided)
    assert (point["reason"], point["threshold"]) == (reason, 0.25)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("by=coverage&coverage=800", "share to accept: expected a percentage above 0, at most 100"),
        ("by=coverage&coverage=many", "share to accept: expected a percentage"),
        ("by=risk&risk=", "largest error rate: expected a percentage above 0 and below 100"),
        ("by=risk&risk=0", "largest error rate: expected a percentage above 0 and below 100"),
        ("by=risk&risk=NaN", "largest error rate: expected a percentage"),
        ("by=risk&risk=5&failing=1e999", "Fails for at most: expected a percentage"),
        ("by=threshold&threshold=1e39", "largest uncertainty: expected a number"),
        ("by=coverage&coverage=8&volume=0.5", "Answers a day: expected a whole number from 1"),
    ],
)
def test_an_invalid_choice_replaces_the_outcome(visitor, calibration, query, said) -> None:
    # The script of the page shows the part as it is, and so it is no failure.
    for part, status in (("", UNPROCESSABLE), ("/outcome", OK)):
        page = visitor.open(f"{address(calibration)}{part}?{query}")
        assert page.status_code == status
        alert = page.text[page.text.index('role="alert">') + len('role="alert">') :]
        assert text_of(alert[: alert.index("</li>")]).strip().startswith(said)
        assert 'form="save"' not in page.text


def test_the_report_links_to_the_page_and_its_file_does_not(visitor, calibration) -> None:
    link = f'href="{address(calibration)}"'
    assert link in visitor.open(f"/report?calibration={calibration}").text
    assert link not in visitor.open(f"/report?calibration={calibration}&format=html").text


def test_of_imported_tables_only_a_threshold_can_be_chosen(service, visitor, calibration) -> None:
    client = service.client()
    document = client.get(f"/calibrations/{calibration}/bins", params={"format": "json"}).json()
    made = client.post("/calibrations/import?name=imported", json=document).json()
    page = visitor.open(address(made["id"]))
    assert page.status_code == OK, page.text
    assert "stores no samples" in page.text
    assert save(visitor, made["id"]).status_code == SEE_OTHER
    assert history(service, made["id"])[0]["consequences"] is None
    assert visitor.open(address(made["id"])).status_code == OK


def test_without_a_top_1_table_the_page_says_so(service, visitor) -> None:
    config = {"name": "five", "top_k": [5], "measures": ["entropy"]}
    made = calibrated(service.client(), config, calibration=logits_of(n_classes=7, n=200))
    page = visitor.open(address(made["id"]))
    assert page.status_code == CONFLICT
    assert "no Top-1 table" in page.text
    assert 'id="choose"' not in page.text


def test_a_failure_to_read_is_a_page(visitor, calibration, monkeypatch) -> None:
    def is_away(*_: object) -> None:
        raise Overloaded("The database does not answer.")

    monkeypatch.setattr(operating_points, "operating_points", is_away)
    answer = visitor.open(address(calibration))
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert "The database does not answer." in answer.text
