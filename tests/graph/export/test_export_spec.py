import json

import numpy as np
import pytest

from howsure.statistics.bins.lookup import LookupTable
from service.graph.export_spec import ExportEvent, ExportSpec

RNG = np.random.default_rng(0)


def event(k=1, n_bins=4, **others):
    arrays = {name: RNG.random(n_bins) for name in ("probability", "lower", "upper")}
    inner = others.pop("inner_edges", np.sort(RNG.random(n_bins - 1)))
    table = LookupTable(
        **{
            "edges": np.concatenate([[-np.inf], inner, [np.inf]]),
            "mean_uncertainty": np.sort(RNG.random(n_bins)),
            **arrays,
            **others,
        }
    )
    return ExportEvent(k, "entropy", table)


def spec(**others):
    return ExportSpec(
        **{
            "events": (event(), event(5, lookup="interpolated"), event(3, n_bins=1)),
            "n_top": 5,
            "ood_threshold": 0.1 + 0.2,
            "accept_thresholds": (("0.05", 1 / 3), ("0.01", None)),
            "metadata": {"howsure.name": "naïve"},
            **others,
        }
    )


@pytest.mark.parametrize("threshold", [None, 0.3])
@pytest.mark.parametrize("top_k", [(), (1, 3, 5, 10)])
def test_every_bit_survives_json(threshold, top_k):
    sent = spec(top_k=top_k, ood_threshold=threshold)
    found = ExportSpec.from_dict(json.loads(json.dumps(sent.as_dict(), allow_nan=False)))
    for name in ("n_top", "ood_threshold", "accept_thresholds", "metadata", "top_k"):
        assert getattr(found, name) == getattr(sent, name)
    for one, other in zip(found.events, sent.events, strict=True):
        assert (one.k, one.column, one.table.lookup) == (other.k, other.column, other.table.lookup)
        for name in ("edges", "probability", "lower", "upper", "mean_uncertainty"):
            left, right = getattr(one.table, name), getattr(other.table, name)
            assert left.dtype == right.dtype
            np.testing.assert_array_equal(left, right)


def test_the_head_measures_the_events_and_what_else_it_served():
    assert spec().head_top_k == (1, 3, 5)
    assert spec(top_k=(10, 1)).head_top_k == (1, 3, 5, 10)
