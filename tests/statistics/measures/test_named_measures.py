"""Measures that a set supplies or a model's graph outputs: names, columns, and when they serve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import simulated_records

from howsure.statistics.fit.options import FitOptions
from howsure.statistics.measures import SINGLE_PASS_MEASURES, parse_measure
from howsure.statistics.measures.measure import output_column
from howsure.statistics.records.build import score_uncertainty

names = st.text(min_size=1, max_size=93).filter(str.isprintable)


def test_printable_names_of_up_to_93_characters_are_outputs():
    for name in ("head/conf:0 é|x", "n" * 93):
        assert parse_measure(f"output:{name}").kind == "output"
    for measure in ("output:" + "n" * 94, "output:", "output:a\0", "output:\ud800", "confidence"):
        with pytest.raises(ValueError, match=r"must be one of|must name a measure"):
            FitOptions(measures=(measure,))


@given(name=names, other=names)
def test_columns_are_short_safe_and_of_one_output_alone(name, other):
    found = output_column(name)
    assert len(found) <= 100
    assert all(c.isascii() and (c.isalnum() or c in "_-") for c in found)
    assert (found == output_column(other)) == (name == other)
    assert found not in SINGLE_PASS_MEASURES
    assert not found.startswith(("supplied_", "neg_log_topk_mass_"))


def test_values_stay_within_float32():
    for extreme in (1e300, -1e300):
        found = score_uncertainty(np.full((1, 3), extreme), top_k=(1,), logits=True)["energy"]
        assert np.isfinite(found).all()
    for bad in (np.nan, 1e39):
        with pytest.raises(ValueError, match="uncertainty must be finite: row 0"):
            simulated_records(40, seed=1).with_supplied({"teacher": np.full(40, bad)})
