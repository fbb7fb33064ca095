"""Any bins document is read back to the last bit."""

import json
import math

import numpy as np
from bins_documents import EARLIER, changed, put
from hypothesis import given
from hypothesis import strategies as st

from service.bins.import_bins import core_table
from service.bins.rules import read_bins_document

FINITE = st.floats(allow_nan=False, allow_infinity=False)
FINITE32 = st.floats(allow_nan=False, allow_infinity=False, width=32)
PROBABILITY = st.floats(1e-12, 1 - 1e-12)


@st.composite
def documents(draw: st.DrawFn) -> dict:
    """Draw a document without a model, of one table."""
    # -0 and 0 are one edge.
    edges = sorted({edge + 0.0 for edge in draw(st.lists(FINITE32, max_size=8))})
    counts = draw(st.lists(st.integers(1, 10**6), min_size=len(edges) + 1, max_size=len(edges) + 1))
    bins = []
    for lower, upper, count in zip([None, *edges], [*edges, None], counts, strict=True):
        probability = draw(PROBABILITY)
        interval = [draw(st.floats(0, probability)), draw(st.floats(probability, 1))]
        bins.append(
            {"lower": lower, "upper": upper, "count": count, "hits": draw(st.integers(0, count))}
            | {"probability": probability, "interval": interval}
            | {"mean_uncertainty": draw(st.none() | FINITE)}
        )
    strength = draw(st.floats(0.001, 1e6))
    prior = {"accuracy": draw(PROBABILITY), "strength": strength, "degenerate": draw(st.booleans())}
    values = {
        "model_sha256": None,
        "model": None,
        "data": {"samples": sum(counts), "kind": "logits"},
        "classes": draw(st.lists(st.text(min_size=1, max_size=9), min_size=2, max_size=4)),
        "out_of_distribution.threshold": draw(st.none() | FINITE32),
        "selective": [],
        "tables.0.lookup": "step",
        "tables.0.monotone": draw(st.booleans()),
        "tables.0.requested_bins": len(bins),
        "tables.0.quantile_bins": len(bins),
        "tables.0.interval.simultaneous": draw(st.booleans()),
        "tables.0.prior": prior,
        "tables.0.bins": bins,
    }
    return changed(EARLIER[1]["document"], put(values))


def shortest(value: object) -> object:
    """Return a value as a program would write it that has one kind of number."""
    if isinstance(value, dict):
        return {key: shortest(part) for key, part in reversed(value.items())}
    if isinstance(value, list):
        return [shortest(part) for part in value]
    whole = isinstance(value, float) and value.is_integer()
    return int(value) if whole else value  # type: ignore[arg-type]


@given(document=documents())
def test_every_bit_comes_through_whoever_writes_the_text(document: dict) -> None:
    read = read_bins_document(json.dumps(document).encode())
    again = read_bins_document(json.dumps(shortest(document), ensure_ascii=False).encode())
    third = read_bins_document(json.dumps(read.plain()).encode())

    assert read == again == third
    (kept,), (given_table,) = read.tables, document["tables"]
    table = core_table(kept)
    edges = [-math.inf, *(b["upper"] for b in given_table["bins"][:-1]), math.inf]
    assert table.edges.tobytes() == np.array(edges, dtype=np.float32).tobytes()
    kept_rates = np.array([table.probability, table.lower, table.upper])
    given_rates = np.array([[b["probability"], *b["interval"]] for b in given_table["bins"]])
    assert kept_rates.tobytes() == given_rates.T.tobytes()
