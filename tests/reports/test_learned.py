"""What the learned measure learned, in the report and on its page."""

import httpx
import numpy as np
import pytest
from bins_documents import exported, served_table
from page_visitor import numbers_of, pointed_to
from running_service import calibrated, npz

NAMES = ["<b>shirt</b>", "trouser", "coat", "bag"]
LEARNED = {"measures": ["learned"], "classes": NAMES}


def a_set(worse: float) -> bytes:
    """Return logits whose first class is predicted wrongly more often by this share."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 4, 3000)
    logits = 3.0 * np.eye(4)[labels] + rng.normal(size=(3000, 4))
    predicted = logits.argmax(axis=1)
    wrong = rng.random(3000) < np.where(predicted == 0, 0.1 + worse, 0.1)
    return npz(logits=logits, labels=np.where(wrong, (labels + 1) % 4, labels))


@pytest.fixture(scope="module")
def differing(client: httpx.Client) -> dict:
    return calibrated(client, {"name": "differing"} | LEARNED, calibration=a_set(0.3))


def report_of(client, made: dict, form: str = "json") -> httpx.Response:
    asked = {"calibration": made["id"], "format": form}
    return client.get("/report", params=asked).raise_for_status()


def learned_of(client, made: dict) -> dict:
    return report_of(client, made).json()["events"]["1"]["measures"]["learned"]["learned"]


def test_the_report_has_the_formula_and_the_classes(client, differing) -> None:
    learned = learned_of(client, differing)
    formula = served_table(exported(client, differing["id"]), 1)["label_model"]
    assert [learned[name] for name in ("temperature", "floor")] == [
        formula[name] for name in ("temperature", "floor")
    ]
    assert learned["terms"] == [
        name for name in ("offset", "slope", "mixing", "confusion") if np.any(formula[name])
    ]
    assert sum(learned["class_counts"]) == 3000
    assert int(np.argmin(learned["class_effects"])) == 0


def test_the_page_lists_the_largest_changes_first(client, differing) -> None:
    text = report_of(client, differing, "html").text
    report = report_of(client, differing).json()
    _, _, section = text.partition("What the learned measure learned</h3></summary>")
    section, _, _ = section.partition("</details>")
    shown = [(path, value) for _, path, value in numbers_of(section, "") if "class_" in path]
    effects = [pointed_to(report, path) for path, _ in shown if "class_effects" in path]
    assert sorted(effects, key=lambda effect: -abs(effect)) == effects
    assert len(effects) == len(shown) / 2 == 4
    assert "&lt;b&gt;shirt" in section
    assert "<b>" not in text


def test_texts_name_the_classes_with_the_largest_effects(client, differing) -> None:
    for form in ("markdown", "model-card"):
        assert "\\<b" in report_of(client, differing, form).text.partition("earned measure est")[2]


def test_an_imported_formula_has_no_counts_of_classes(client, differing) -> None:
    document = exported(client, differing["id"])
    moved = client.post("/calibrations/import?name=moved-formula", json=document).json()
    found, source = learned_of(client, moved), learned_of(client, differing)
    assert found == source | {"class_effects": None, "class_counts": None}
    for form in ("html", "markdown"):
        report_of(client, moved, form)
