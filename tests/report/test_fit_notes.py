"""Notes on fits: a golden text, and the sets that have one."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import fit_of, records_with_ranks, simulated_records

from howsure.report.words.fit_notes import fit_notes
from howsure.statistics.fit.options import FitOptions


def notes_of(records, **options):
    options = {"top_k": (1,), "measures": ("entropy",)} | options
    return fit_notes(fit_of(records, **options), records, FitOptions(**options))


SETS = {
    "no miss": ([0] * 100, {}),
    "no hit": ([1] * 100, {}),
    "one miss": ([0] * 99 + [1], {}),
    "three hits": ([1] * 97 + [0] * 3, {}),
    "three samples": ([0, 1, 0], {}),
    "one sample": ([0], {"bins": 8}),
    "wide intervals": ([0, 1] * 50, {"bins": 2}),
    "narrow intervals": ([0, 1] * 500, {"bins": 2}),
    "pooled bins": (np.random.default_rng(0).integers(0, 2, 400), {"bins": 8, "monotone": True}),
    "tied values": ([0, 1] * 100, {"bins": 8, "measures": ("margin",), "tied": 150}),
    "weights": ([0, 1] * 99, {"bins": 2, "design": {"weight": np.repeat([1.0, 2.0], 99)}}),
    "groups": ([0, 1] * 100, {"bins": 2, "design": {"group": np.arange(200) // 4}}),
}


def test_texts(golden):
    lines = []
    for name, (ranks, options) in deepcopy(SETS).items():
        tied, design = options.pop("tied", 0), options.pop("design", {})
        records = replace(records_with_ranks(ranks), **design)
        records.uncertainty["margin"][:tied] = 0.5
        lines += [f"{name}:", *(f"- {note}" for note in notes_of(records, folds=5, **options))]
    golden("statistics/fit_warnings.txt", "\n".join(lines))


@pytest.mark.parametrize(("lookup", "is_noted"), [("smooth", False), ("step", True)])
def test_a_healthy_set_is_noted_about_only_if_a_baseline_is_better(lookup, is_noted):
    """One step loses to a temperature; a curve does not."""
    records = simulated_records(2000, seed=1, sharpness=3.0)
    options = {"bins": 1, "folds": 10, "lookup": lookup, "measures": ("learned", "margin")}
    assert len(notes_of(records, **options)) == is_noted
