"""Warnings of a fit: a golden text, and the sets that are warned about."""

import numpy as np
from sample_strategies import records_with_ranks, simulated_records

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions


def fitted(ranks, **options):
    options = {"top_k": (1,), "measures": ("entropy",), **options}
    return fit_calibration(records_with_ranks(ranks), options=FitOptions(**options))


SETS = {
    "no miss": ([0] * 100, {}),
    "no hit": ([1] * 100, {}),
    "one miss": ([0] * 99 + [1], {}),
    "three misses": ([0] * 97 + [1] * 3, {}),
    "three hits": ([1] * 97 + [0] * 3, {}),
    "three samples": ([0, 1, 0], {}),
    "one sample": ([0], {"bins": 8}),
    "more bins than samples": ([0, 1, 0, 0], {"bins": 8}),
    "wide intervals": ([0, 1] * 50, {"bins": 2}),
    "narrow intervals": ([0, 1] * 500, {"bins": 2}),
    "pooled bins": (np.random.default_rng(0).integers(0, 2, 400), {"bins": 8, "monotone": True}),
}


def test_texts(golden):
    lines = []
    for name, (ranks, options) in SETS.items():
        lines += [f"{name}:", *(f"- {text}" for text in fitted(ranks, **options).warnings)]
    records = records_with_ranks([0, 1] * 100)
    records.uncertainty["margin"][:150] = 0.5
    options = FitOptions(top_k=(1,), bins=8, folds=4, measures=("margin",))
    fit = fit_calibration(records, options=options)
    assert fit.events[1].measures["margin"].quantile_bins < 8
    lines += ["tied values:", *(f"- {text}" for text in fit.warnings)]
    golden("statistics/fit_warnings.txt", "\n".join(lines))


def test_a_healthy_set_is_warned_about_only_if_a_baseline_is_better():
    """Five steps lose to a temperature; a curve does not."""
    records = simulated_records(4000, seed=1, sharpness=3.0)
    of_curve, of_steps = (
        fit_calibration(records, options=FitOptions(
            top_k=(1,), bins=5, lookup=lookup, measures=("learned", "neg_log_pmax")))
        for lookup in ("smooth", "step")
    )  # fmt: skip
    assert of_curve.warnings == []
    assert of_steps.warnings == [of_steps.events[1].verdict.sentence]
