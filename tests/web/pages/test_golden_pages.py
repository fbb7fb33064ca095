"""What people read on pages beside the report. Other tests check decisions and structure."""

import re

from page_text import document, visible_text

from howsure.statistics.selective import SelectiveResult, SelectiveTarget
from service.web.operating_point.configured_rates import abstain_without_point

OUTCOMES = {
    "operating-point": (
        "by=coverage&coverage=80&volume=200000&unit=letters",
        "by=risk&risk=5&failing=10",
        "by=risk&risk=0.05",
        "by=threshold&threshold=-1",
        "by=coverage&coverage=800",
    ),
    "digits": ("by=risk&risk=5",),
    "weighted": ("by=risk&risk=10",),
    "contradicted": ("by=risk&risk=5",),
    "mostly-wrong": ("by=risk&risk=10",),
    "imported": ("by=threshold&threshold=0.4",),
    "pairs": ("by=threshold&threshold=0.8",),
}
TABS = {"measures": ("rare-errors", "imported", "pairs"), "samples": ("pairs", "imported")}
TABS |= {"try": ("pictures@1?row=0", "scores", "pairs?row=385"), "integrate": ("scores",)}


def of_page(name: str, tab: str) -> str:
    reference, _, query = name.partition("?")
    return f"/pages/calibrations/{reference}/{tab}" + f"?{query}" * bool(query)


def test_operating_points(visitor, shelf, digits_calibration, golden) -> None:
    texts = {}
    for name, queries in OUTCOMES.items():
        if name != digits_calibration["name"]:
            shelf(name)
        for query in queries:
            path = of_page(f"{name}?{query}", "operating-point/outcome")
            texts[f"{name}: {query}"] = visible_text(visitor.open(path).text)
    for name in ("operating-point", "pairs"):
        page = visitor.open(of_page(name, "operating-point")).text
        texts[f"the page of {name}"] = visible_text(page)
    met, unmet = (
        SelectiveResult(SelectiveTarget(rate, 0.05), threshold, 0.4, 0, 0)
        for rate, threshold in ((0.125, 1.0), (0.0005, None))
    )
    texts["without an operating point"] = "\n".join(
        abstain_without_point(selective, then=then)
        for selective in (None, [], [unmet], [met, unmet])
        for then in (False, True)
    )
    golden("operating-points.txt", document(texts))


def test_tabs(visitor, shelf, golden) -> None:
    texts = {}
    for tab, names in TABS.items():
        for name in names:
            shelf(re.split("[@?]", name)[0])
            text = visible_text(visitor.open(of_page(name, tab)).text)
            # The first sample of a list is enough.
            head, *rows = text.split("\nRow ")
            shown = [head, *rows[:1], *rows[-1:][: len(rows) > 1]]
            texts[f"{tab} of {name}"] = "\nRow ".join(shown)
    golden("tabs.txt", document(texts))
