"""Measures side by side: every number that of the report, ties called ties, and how to change."""

import html
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import onnx
import pytest
from keyed_service import KeyedService, keyed_service, logits_of
from onnx import helper
from page_visitor import Visitor, elements, pointed_to
from running_service import digits

from howsure.statistics.measures import MEASURE_NAMES
from service.reports.report import COMPARED
from service.web.measures import NEEDS, SCORES, needs_of

WAIT = {"Prefer": "wait=60"}
HOSTILE = "<b>it's</b> $(id) אבג"
OUTPUT = f"output:{HOSTILE}"
LAST_LAYER = "last_layer_dropout_variance"
FITTED = ["entropy", "margin", LAST_LAYER, OUTPUT]


def model() -> bytes:
    """Return the digits model with one more output: the largest logit, turned round."""
    made = onnx.load_from_string(digits("model.onnx"))
    made.graph.node.extend(
        [
            helper.make_node("ReduceMax", ["logits"], ["largest"], axes=[1], keepdims=0),
            helper.make_node("Neg", ["largest"], [HOSTILE]),
        ]
    )
    made.graph.output.append(helper.make_tensor_value_info(HOSTILE, 1, ("N",)))
    return made.SerializeToString()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("measures"), first=False) as found:
        config = json.dumps({"name": "digits", "measures": FITTED, "bins": 6, "folds": 4})
        files = [
            ("model", ("model.onnx", model())),
            ("calibration", ("c.npz", digits("calibration.npz"))),
            ("evaluation", ("e.npz", digits("evaluation.npz"))),
            ("config", (None, config)),
        ]
        made = found.client().post("/calibrate", files=files, headers=WAIT)
        assert made.json()["status"] == "succeeded", made.text
        yield found


def refitted(service: KeyedService, **changes: Any) -> str:
    made = service.client().post("/calibrations/digits@1/refit", json=changes, headers=WAIT)
    assert made.json()["status"] == "succeeded", made.text
    return f"digits@{made.json()['version']}"


def report_of(service: KeyedService, name: str) -> dict[str, Any]:
    return service.client().get("/report", params={"calibration": name}).json()


def page_of(service: KeyedService, name: str) -> httpx.Response:
    """Open the page by the tab of the report."""
    visitor = Visitor(service)
    tabs = [
        a["href"]
        for tag, a in elements(visitor.open(f"/report?calibration={name}").text)
        if tag == "a" and (a["href"] or "").endswith("/measures")
    ]
    return visitor.open(tabs[0] or "")


@pytest.fixture(scope="module")
def report(service: KeyedService) -> dict[str, Any]:
    return report_of(service, "digits@1")


@pytest.fixture(scope="module")
def shown(service: KeyedService) -> httpx.Response:
    return page_of(service, "digits@1")


def test_every_number_is_one_of_the_report(shown, report) -> None:
    found = [a for _, a in elements(shown.text) if "data-path" in a]
    paths = set()
    for attributes in found:
        path = attributes["data-path"] or ""
        assert json.loads(attributes["data-value"] or "") == pointed_to(report, path), path
        paths.add(path)
    for k, event in report["events"].items():
        judged = [("measures", name) for name in event["measures"]]
        judged += [("baselines", name) for name in event["baselines"]]
        for kind, name in judged:
            place = f"/events/{k}/{kind}/{name.replace('/', '~1')}"
            assert {f"{place}/scores/nll/mean", f"{place}/evaluation/nll"} <= paths
        assert f"/events/{k}/oracle/scores/nll/mean" in paths
        for at in range(len(FITTED)):
            row = f"/events/{k}/comparison/{at}"
            assert {f"{row}/passes", f"{row}/ms_per_row"} <= paths
    last = len(report["model_scores"]["calibration"]["passes"][LAST_LAYER]) - 1
    assert f"/model_scores/calibration/passes/{LAST_LAYER}/{last}/nll" in paths


def test_numbers_stand_nowhere_else_in_tables(shown) -> None:
    text = re.sub(r"<details>.*?</details>", "", shown.text, flags=re.DOTALL)
    cells = re.findall(r'<td class="n">(.*?)</td>', text, re.DOTALL)
    assert len(cells) > 100
    for cell in cells:
        assert not re.search(r"\d", re.sub(r'<span class="number".*?</span>', "", cell)), cell


def test_scores_are_those_of_the_comparison(shown, report) -> None:
    """Of all folds together where the report's comparison has them so: Top-5 has few errors."""
    found = {a["data-path"] for _, a in elements(shown.text) if "data-path" in a}
    pooled = 0
    for k, event in report["events"].items():
        for row in event["comparison"]:
            scores = f"/events/{k}/measures/{row['measure'].replace('/', '~1')}/scores"
            for score in COMPARED:
                kind = "pooled" if row[score]["pooled"] else "mean"
                assert f"{scores}/{score}/{kind}" in found
                assert pointed_to(report, f"{scores}/{score}/{kind}") == row[score]["value"]
                pooled += row[score]["pooled"]
    assert pooled > 2 * len(FITTED)


def test_measures_baselines_and_the_oracle_are_apart(shown, report) -> None:
    [table] = re.findall(
        r"<table.*?</table>", shown.text.partition("Cross-validated</h3>")[2], re.DOTALL
    )[:1]
    bodies = re.findall(r"<tbody>(.*?)</tbody>", table, re.DOTALL)
    names = [
        [html.unescape(name) for name in re.findall(r'scope="row"><code><bdi>(.*?)</bdi>', body)]
        for body in bodies
    ]
    event = report["events"]["1"]
    assert names == [
        [row["measure"] for row in event["comparison"]],
        list(event["baselines"]),
        ["loss"],
    ]
    assert table.count('class="badge">serves') == 1
    served = bodies[0].partition('class="badge">serves')[0]
    assert html.unescape(served).rpartition("<bdi>")[2].startswith(event["served"])


def test_ties_are_called_ties(shown, report) -> None:
    words = re.findall(
        r'data-path="(/events/[^"]*)/mean"[^<]*</span>'
        r'(?:<span class="hint">± <span[^>]*>[^<]*</span></span>)?'
        r'<span class="hint verdict-word">([^<]+)<',
        shown.text,
    )
    expected = {}
    for k, event in report["events"].items():
        for at, row in enumerate(event["comparison"]):
            if row["difference"]:
                expected[f"/events/{k}/comparison/{at}/difference"] = row["difference"]
        for name, found in event["baselines"].items():
            for phase, differences in found["difference"].items():
                path = f"/events/{k}/baselines/{name}/difference/{phase}/nll"
                expected[path] = differences["nll"]
    assert dict(words).keys() == expected.keys()
    for path, word in words:
        mean, error = expected[path]["mean"], expected[path]["standard_error"]
        said = "clearly worse" if mean > 0 else "clearly better"
        if abs(mean) <= 2 * error:
            said = "tie: may be chance" if error else "the same"
        assert word == said, path
    assert {"clearly worse", "tie: may be chance"} <= {word for _, word in words}


def test_it_says_why_it_serves_and_what_that_costs(service, shown) -> None:
    assert "it has the least cross-validated NLL" in shown.text
    name = refitted(service, serve={"5": LAST_LAYER})
    page = page_of(service, name).text
    _, _, second = page.partition('<h2 id="top-5">')
    assert f"<bdi>{LAST_LAYER}</bdi></code> serves: it was asked for" in second
    # Its passes of the last layer take longer than what ties with it.
    cheaper = re.search(r"Of these <code><bdi>(.*?)</bdi></code> costs less: (.*)", second)
    assert cheaper
    values = [json.loads(value) for value in re.findall(r'data-value="([^"]+)"', cheaper[2])]
    costs = {
        row["measure"]: row["ms_per_row"]
        for row in report_of(service, name)["events"]["5"]["comparison"]
    }
    assert values == [costs[html.unescape(cheaper[1])], costs[LAST_LAYER]]
    assert values[0] < values[1]


def test_the_command_has_another_serve_and_leaves_the_rest(service) -> None:
    """As it stands on the page, it is one for a shell: quoted, whatever a measure is called."""
    name = refitted(service, serve={"5": OUTPUT})
    text = page_of(service, name).text
    [command] = re.findall(r"<pre[^>]*><code>(curl .*?)</code></pre>", text, re.DOTALL)
    words = shlex.split(html.unescape(command))
    assert words[0] == "curl"
    sent = service.client().post(
        words[1],
        content=words[words.index("-d") + 1].encode(),
        headers=dict([words[words.index("-H") + 1].split(": ")]) | WAIT,
    )
    assert sent.status_code == httpx.codes.CREATED, sent.text
    before = report_of(service, name)["events"]["1"]["comparison"]
    other = next(row["measure"] for row in before if not row["served"])
    assert sent.json()["serve"] == {"1": other, "5": OUTPUT}
    compared = Visitor(service).open(f"/report?calibration=digits@1&calibration={name}").text
    assert "<b>" not in compared
    assert html.escape(HOSTILE).replace("&#x27;", "&#39;") in compared


def test_who_signs_in_sends_a_key_with_the_command(tmp_path) -> None:
    with keyed_service(tmp_path, first=False) as service:
        key = service.make("lab").text
    with keyed_service(tmp_path, first=False) as service:
        client = service.client(key)
        made = client.post(
            "/calibrate", files=[("calibration", ("c.csv", logits_of()))], headers=WAIT
        )
        assert made.json()["status"] == "succeeded", made.text
        visitor = Visitor(service)
        visitor.sign_in(key)
        page = visitor.open(f"/pages/calibrations/{made.json()['id']}/measures").text
    assert "Authorization: Bearer $HOWSURE_API_KEY" in html.unescape(page)
    assert "Without a model there is nothing to time" in page


def test_names_of_strangers_are_text(shown) -> None:
    assert "<b>" not in shown.text
    assert f"<bdi>{html.escape(OUTPUT).replace('&#x27;', '&#39;')}</bdi>" in shown.text


def test_imported_tables_have_no_scores(service) -> None:
    client = service.client()
    document = client.get("/calibrations/digits@1/bins").json()
    made = client.post("/calibrations/import", params={"name": "moved"}, json=document)
    assert made.status_code == httpx.codes.CREATED, made.text
    text = page_of(service, "moved").text
    assert "nothing was judged here" in text
    assert "the imported tables say so" in text
    assert "curl" not in text


def test_what_is_not_there_is_not_found(service) -> None:
    answer = Visitor(service).open("/pages/calibrations/none/measures")
    assert answer.status_code == httpx.codes.NOT_FOUND


def test_every_measure_is_said_to_need_something() -> None:
    assert NEEDS.keys() == set(MEASURE_NAMES)
    assert "uncertainty_doctor" in needs_of("supplied:doctor")
    assert "output confidence" in needs_of("output:confidence")


def test_every_column_is_explained_where_it_is_said_to_be(shown) -> None:
    statistics = Path(__file__).parents[3] / "docs" / "statistics.md"
    headings = re.findall(r"^#+ `?(.*?)`?$", statistics.read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    named = re.findall(r"<code>docs/statistics\.md#(.*?)</code>", shown.text)
    assert set(named) >= {score.name for score in SCORES}
    assert set(named) <= anchors
    assert all(f"<dt>{score.heading}</dt>" in shown.text for score in SCORES)
