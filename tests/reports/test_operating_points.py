"""Somebody decides on a threshold; answers are held against it, and the decision can be read."""

import io

import httpx
import numpy as np
import pytest
from bins_documents import answers, digits_set
from keyed_service import logits_of
from refusals import assert_refused
from report_scenarios import of_outputs, outputs
from running_service import NPY, calibrated, digits, npy, refit, send

from howsure.numbers import rough_count
from service.storage import operating_points

CREATED, OK, CONFLICT = httpx.codes.CREATED, httpx.codes.OK, httpx.codes.CONFLICT
UNPROCESSABLE = httpx.codes.UNPROCESSABLE_ENTITY
PIXELS, LABELS = digits_set().values()
SIGNED = {"author": "A. Reviewer", "reason": "agreed with the clinic"}


@pytest.fixture
def address(client: httpx.Client, shelf):
    """Yield where the operating points of a version without any are."""
    made = refit(client, shelf("evaluated-digits")["id"], bins=7).json()
    assert made["status"] == "succeeded", made
    yield f"/calibrations/{made['id']}/operating-points"
    address = f"/calibrations/{made['id']}"
    assert client.delete(address).is_success
    assert client.get(f"{address}/operating-points").status_code == httpx.codes.NOT_FOUND


def save(client: httpx.Client, address: str, **choice) -> dict:
    answer = client.post(address, json=SIGNED | {"name": "automatic"} | choice)
    assert answer.status_code == CREATED, answer.text
    return answer.json()


def predictions(client: httpx.Client, address: str, rows=PIXELS) -> list[dict]:
    return answers(client, address.split("/")[2], inputs=rows.tolist())


def test_answers_are_held_against_the_threshold_in_every_form(client, address) -> None:
    before = predictions(client, address)
    threshold = save(client, address, coverage=0.8)["threshold"]
    found = predictions(client, address)
    above = [p["top1"]["uncertainty"] > threshold for p in found]
    assert 0 < sum(above) < len(above)
    for now, then, flag in zip(found, before, above, strict=True):
        assert now == then | {"abstain": {"automatic": flag} | then["abstain"]}
    calibration = address.split("/")[2]
    for rows in (PIXELS, PIXELS[:2]):  # with arrays, and without
        answer = send(client, calibration, npy(rows), NPY | {"Accept": "application/x-npz"})
        with np.load(io.BytesIO(answer.content)) as arrays:
            for name in ("abstain", "abstain_automatic"):
                assert arrays[name].tolist() == above[: len(rows)]
    version = client.get(f"/calibrations/{calibration}").json()["version"]
    at = f"/v2/models/evaluated-digits/versions/{version}"
    model = client.get(at).json()
    assert "abstain_automatic" in [output["name"] for output in model["outputs"]]
    given = {key: model["inputs"][0][key] for key in ("name", "datatype")}
    tensor = given | {"shape": [2, *PIXELS.shape[1:]], "data": PIXELS[:2].tolist()}
    asked = {"inputs": [tensor], "outputs": [{"name": "abstain_automatic"}]}
    answer = client.post(f"{at}/infer", json=asked)
    assert answer.json()["outputs"][0]["data"] == above[:2]


def test_a_preview_is_what_is_then_saved(client, address) -> None:
    for choice in ({"coverage": 0.7}, {"threshold": 0.25}, {"max_risk": 0.1, "delta": 0.1}):
        seen = client.get(f"{address}/preview", params=choice).json()
        made = save(client, address, **choice)
        assert made["threshold"] == float(np.float32(seen["threshold"]))
        assert made["consequences"] == seen["consequences"]
        assert made["chosen_by"] == choice
        assert (seen["assurance"] is not None) == ("max_risk" in choice)
        assert (seen["labels_missing"], seen["expected"]) == (None, None)
        of = seen["consequences"]
        assert of["n_errors"] <= of["n_accepted"] <= of["n_samples"]
        assert of["risk_interval"][0] <= of["risk"] <= of["risk_interval"][1]
    assert of["risk"] <= 0.1


@pytest.mark.parametrize("volume", [0, 1.5, 10**13])
def test_volumes_out_of_range_are_refused(client, shelf, volume) -> None:
    address = f"/calibrations/{shelf('quick-digits')['id']}/operating-points/preview"
    answer = client.get(address, params={"coverage": 0.97, "volume": volume})
    assert answer.status_code == UNPROCESSABLE


def test_the_risk_that_a_preview_names_accepts_as_much(client, address) -> None:
    for choice in ({"coverage": 1.0}, {"coverage": 0.8, "delta": 0.01}):
        seen = client.get(f"{address}/preview", params=choice).json()
        assert seen["delta"] == choice.get("delta", 0.05)
        risk = {"max_risk": seen["max_risk"], "delta": seen["delta"]}
        certified = client.get(f"{address}/preview", params=risk).json()
        assert (certified["certified"], certified["max_risk"]) == (True, seen["max_risk"])
        assert certified["consequences"]["coverage"] >= seen["consequences"]["coverage"]
    nothing = client.get(f"{address}/preview", params={"threshold": -1e6}).json()
    assert (nothing["max_risk"], nothing["consequences"]["risk"]) == (None, None)


def test_the_history_says_who_decided_what_and_why(client, address) -> None:
    assert client.get(address).json()["operating_points"] == []
    first = save(client, address, coverage=0.5)
    second = save(client, address, name="fast-lane", coverage=0.9, reason="<b>more</b>")
    history = client.get(address).json()["operating_points"]
    assert [p["number"] for p in history] == [2, 1]
    assert [p["in_force"] for p in history] == [True, False]
    assert history[0] == second
    assert history[1] == first | {"in_force": False}
    assert predictions(client, address, PIXELS[:1])[0]["abstain"].keys() >= {"fast-lane"}
    assert "automatic" not in predictions(client, address, PIXELS[:1])[0]["abstain"]

    withdrawn = client.post(f"{address}/withdraw", json=SIGNED | {"reason": "drift"})
    assert withdrawn.status_code == OK, withdrawn.text
    assert withdrawn.json()["threshold"] is None
    assert predictions(client, address, PIXELS[:1])[0]["abstain"].keys().isdisjoint({"fast-lane"})
    assert [p["in_force"] for p in client.get(address).json()["operating_points"]] == [False] * 3
    again = client.post(f"{address}/withdraw", json=SIGNED)
    assert again.status_code == CONFLICT


def test_decisions_come_in_pages_and_there_are_so_many(client, address, monkeypatch) -> None:
    monkeypatch.setattr(operating_points, "MOST_DECISIONS", 3)
    for coverage in (0.5, 0.6, 0.7):
        save(client, address, coverage=coverage)
    first = client.get(address, params={"limit": 2}).json()
    rest = client.get(address, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    pages = [
        [(point["number"], point["in_force"]) for point in page["operating_points"]]
        for page in (first, rest)
    ]
    assert pages == [[(3, True), (2, False)], [(1, False)]]
    assert rest["next_cursor"] is None
    refused = client.get(address, params={"cursor": "x"})
    assert_refused(refused, "cursor", "next_cursor")
    page = f"/pages{address.removesuffix('s')}?decisions={first['next_cursor']}"
    assert client.get(page).text.count('data-label="Author"') == 1

    refused = client.post(address, json=SIGNED | {"name": "more", "coverage": 0.5})
    assert (refused.status_code, "3 decisions" in refused.text) == (CONFLICT, True)
    assert client.post(f"{address}/withdraw", json=SIGNED).status_code == OK


def test_a_risk_that_cannot_be_kept_says_how_many_labels_are_missing(client, address) -> None:
    seen = client.get(f"{address}/preview", params={"max_risk": 0.0005}).json()
    assert seen["threshold"] is seen["consequences"] is None
    answer = client.post(address, json=SIGNED | {"name": "strict", "max_risk": 0.0005})
    assert answer.status_code == UNPROCESSABLE
    (error,) = answer.json()["errors"]
    assert error["location"] == "max_risk"
    if seen["labels_missing"] is not None:
        assert f" {rough_count(seen['labels_missing'])} " in error["message"]
    assert client.get(address).json()["operating_points"] == []


HALF = {"coverage": 0.5}
RULES = [
    *({}, HALF | {"threshold": 1.0}, {"coverage": 0}, {"coverage": "NaN"}, {"threshold": 1e39}),
    *({"max_risk": 1.0}, {"max_risk": 0.1, "delta": 0}),
    *(HALF | {"name": name} for name in ("0.05", "Automatic", "")),
    *(HALF | fields for fields in ({"author": " "}, {"reason": "two\nlines"}, {"colour": "red"})),
]


@pytest.mark.parametrize("choice", RULES, ids=str)
def test_what_breaks_a_rule_is_refused_and_not_kept(client, shelf, choice) -> None:
    address = f"/calibrations/{shelf('quick-digits')['id']}/operating-points"
    answer = client.post(address, json=SIGNED | {"name": "automatic"} | choice)
    assert answer.status_code == UNPROCESSABLE, answer.text
    assert answer.json()["errors"]
    assert client.get(address).json()["operating_points"] == []


def test_without_a_top_1_table_nothing_can_be_previewed(client) -> None:
    config = {"name": "top-five", "top_k": [5]}
    calibrated(client, config, calibration=digits("calibration_logits.csv"))
    answer = client.get("/calibrations/top-five/operating-points/preview?coverage=0.5")
    assert answer.status_code == CONFLICT
    assert "Top-1" in answer.json()["detail"]


def test_without_records_only_a_threshold_can_be_chosen(client, shelf) -> None:
    document = client.get(f"/calibrations/{shelf('logits')['id']}/bins").json()
    imported = client.post("/calibrations/import?name=moved-point", json=document)
    assert imported.status_code == CREATED, imported.text
    address = "/calibrations/moved-point/operating-points"
    answer = client.get(f"{address}/preview?coverage=0.5")
    assert answer.status_code == CONFLICT
    assert "records" in answer.json()["detail"]
    made = save(client, address, threshold=0.5)
    assert (made["threshold"], made["consequences"]) == (0.5, None)


def test_a_threshold_is_judged_on_the_evaluation_set(client, address) -> None:
    """The counts are those of the answers to the evaluation set; also by class and by label."""
    saved = save(client, address, coverage=0.95)
    rows = predictions(client, address)
    accepted = np.array([not row["abstain"]["automatic"] for row in rows])
    named = np.array([row["class"] for row in rows])
    judged = saved["consequences"]["evaluation"]
    assert (judged["n_samples"], judged["n_accepted"]) == (600, accepted.sum())
    assert judged["n_errors"] == (accepted & (named != LABELS)).sum() > 0
    assert judged["risk_interval"][0] < judged["risk"] < judged["risk_interval"][1]
    assert len(judged["by_class"]) == 5
    for one in judged["by_class"]:
        for kind, of in (("named", named), ("labelled", LABELS)):
            chosen = accepted & (of == one["index"])
            counts = chosen.sum(), (chosen & (named != LABELS)).sum()
            assert (one[kind]["n_samples"], one[kind]["n_errors"]) == counts
    (listed,) = client.get(address).json()["operating_points"]
    report = client.get("/report", params={"calibration": address.split("/")[2]}).json()
    for point in (listed, report["operating_point"]):
        assert point["consequences"] == saved["consequences"]
    # The thresholds of the configuration are found again, and judged, too.
    event = report["events"]["1"]
    for target in event["measures"][event["served"]]["selective"]:
        seen = client.get(f"{address}/preview", params=target["target"]).json()
        assert seen["threshold"] == target["threshold"]
        if target["threshold"] is not None:
            assert seen["consequences"]["coverage"] == target["coverage"]
            assert target["evaluation"].items() <= seen["consequences"]["evaluation"].items()


def test_pairs_have_no_errors_by_class(client, shelf) -> None:
    address = f"/calibrations/{shelf('pairs')['id']}/operating-points/preview"
    seen = client.get(address, params={"coverage": 0.5}).raise_for_status().json()
    assert seen["consequences"]["by_class"] == []


def test_a_new_version_says_that_it_does_not_follow_an_earlier_decision(client) -> None:
    def calibrate_anew() -> str:
        made = calibrated(client, {"name": "signed"}, calibration=logits_of())
        return f"/calibrations/{made['id']}/operating-points"

    def earlier(version: int) -> int | None:
        """Return the version whose decision this one does not follow; the home page has it too."""
        report = client.get("/report", params={"calibration": f"signed@{version}"}).json()
        number = (report["earlier_operating_point"] or {}).get("version")
        assert (f">signed-off: only @{number}</a>" in client.get("/").text) == bool(number)
        return number

    first = calibrate_anew()
    save(client, first, name="signed-off", coverage=0.8)
    second = calibrate_anew()
    assert earlier(2) == 1
    page = client.get(f"/pages{second.removesuffix('s')}").raise_for_status().text
    assert "signed@1 has the operating point" in page
    save(client, second, name="signed-off", coverage=0.9)
    assert earlier(1) is earlier(2) is None
    client.post(f"{first}/withdraw", json=SIGNED).raise_for_status()
    calibrate_anew()
    assert earlier(3) == 2


@pytest.mark.parametrize(("serve", "is_certified"), [({}, False), ({"1": "margin"}, True)])
def test_only_a_measure_that_no_label_chose_is_certified(client, serve, is_certified) -> None:
    name = f"chosen-{len(serve)}"
    of_outputs(outputs(400, seed=9), measures=["entropy", "margin"], serve=serve)(client, name)
    preview = client.get(
        f"/calibrations/{name}/operating-points/preview", params={"max_risk": 0.2}
    ).json()
    assert preview["threshold"] is not None
    assert preview["certified"] is is_certified
    assert ("same labels chose" in preview["assurance"]) is not is_certified
    report = client.get("/report", params={"calibration": name, "format": "markdown"}).text
    assert (f"These error rates are {preview['assurance']}." in report) is not is_certified
    page = client.get(f"/pages/calibrations/{name}/operating-point?by=risk&risk=20").text
    assert f"{preview['assurance'].capitalize()}." in page
