"""Measures that are outputs of a model's graph: their names, their columns, and that they serve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from score_strategies import simulated_records

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.measures import SINGLE_PASS_MEASURES, column, parse_measure
from howsure.statistics.measures.measure import output_column
from howsure.statistics.records.records import Records

names = st.text(min_size=1, max_size=93).filter(str.isprintable)


@pytest.mark.parametrize(
    ("measure", "is_one"),
    [
        ("output:confidence", True),
        ("output:head/conf:0 é|x", True),
        ("output:" + "n" * 93, True),
        ("output:" + "n" * 94, False),
        ("output:", False),
        ("output:a\0", False),
        ("output:a\n", False),
        ("output:\ud800", False),
        ("confidence", False),
        ("supplied:output:", False),
    ],
)
def test_which_names_are_outputs(measure, is_one):
    if is_one:
        assert parse_measure(measure).kind == "output"
        return
    assert not measure.startswith("supplied:") or parse_measure(measure).kind == "supplied"
    with pytest.raises(ValueError, match=r"must be one of|must name a measure"):
        FitOptions(measures=(measure,))


def test_a_plain_name_stays_readable():
    assert column("output:confidence", 1) == column("output:confidence", 5) == "output_confidence"


@given(name=names, other=names)
def test_columns_are_short_safe_and_of_one_output_alone(name, other):
    found = output_column(name)
    assert len(found) <= 100
    assert all(c.isascii() and (c.isalnum() or c in "_-") for c in found)
    assert (found == output_column(other)) == (name == other)
    assert found not in SINGLE_PASS_MEASURES
    assert not found.startswith(("supplied_", "neg_log_topk_mass_"))


def test_it_travels_with_the_records_and_serves_by_default_where_it_is_best():
    records = simulated_records(400, seed=1, top_k=(1,))
    noise = np.random.default_rng(0).normal(size=400) * 0.1
    arrays = records.to_arrays()
    arrays["uncertainty_output_learned"] = (~records.hits(1) + noise).astype(np.float32)
    options = FitOptions(top_k=(1,), measures=("entropy", "output:learned"), bins=4)
    event = fit_calibration(Records.from_arrays(arrays), options=options).events[1]
    assert event.measures["output:learned"].column == "output_learned"
    assert parse_measure("output:learned").kind == "output"
    assert event.served == "output:learned"
    with pytest.raises(ValueError, match="records must hold output_learned, not only"):
        fit_calibration(records, options=options)
