"""Answers cut from a run equal answers made for those rows alone."""

import uuid
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from plain_answers import plain_arrays, plain_json, plain_oip

from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from service.errors import InvalidInput
from service.metrics.answers import AnswerCounts
from service.predictions.answer_writer import BatchAnswers
from service.predictions.lookup import answers_of
from service.predictions.served_calibration import ServedCalibration, ServedEvent
from service.runner.messages.open_inference import RequestedOutputs
from service.runner.model_output import HeadOutputs, OutputMatrix
from service.storage.calibration_queries import CalibrationRef

LABELS = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\%b,[]{}'), min_size=1
)
SCALARS = st.floats(-8.0, 8.0, width=32)
SHARES = st.floats(0.0, 1.0)


@st.composite
def tables(draw):
    n_bins = draw(st.integers(1, 4))
    between = sorted(draw(st.sets(SCALARS, min_size=n_bins - 1, max_size=n_bins - 1)))
    means = sorted(draw(st.sets(SCALARS, min_size=n_bins, max_size=n_bins)))
    lower, probability, upper = np.sort(draw(arrays(np.float64, (3, n_bins), elements=SHARES)), 0)
    return BinTable(
        edges=[-np.inf, *between, np.inf],
        counts=[10] * n_bins,
        hits=[5] * n_bins,
        prior=BetaPrior(0.5, 1.0),
        probability=probability,
        lower=lower,
        upper=upper,
        mean_uncertainty=means,
        requested_bins=n_bins,
        lookup=draw(st.sampled_from(["step", "interpolated"])),
    )


@st.composite
def calibrations(draw):
    names = draw(st.lists(LABELS, min_size=2, max_size=8))
    top_k = draw(st.sets(st.integers(1, len(names) - 1), min_size=1, max_size=2))
    bounds = st.none() | SCALARS
    measures = st.sampled_from(["entropy", 'output:"%b"', "supplied:schärfe"])
    events = [ServedEvent(k, draw(measures), f"column_{k}", draw(tables())) for k in sorted(top_k)]
    return ServedCalibration(
        ref=CalibrationRef(uuid.uuid4(), draw(LABELS), draw(st.integers(1, 99))),
        model=None,
        class_names=tuple(names),
        top_k=tuple(sorted(top_k)),
        ood_threshold=draw(bounds),
        accept_thresholds=draw(st.dictionaries(st.sampled_from(["0.01", "0.05", "%b"]), bounds)),
        events=tuple(events),
    )


@st.composite
def runs(draw):
    """A calibration with what its model gave for a few rows."""
    served = draw(calibrations())
    n_classes, n_rows = len(served.class_names), draw(st.integers(1, 5))
    ranked = st.permutations(range(n_classes)).map(lambda order: order[: max(5, *served.top_k, 5)])
    shown = np.array(draw(st.lists(ranked, min_size=n_rows, max_size=n_rows)), np.int64)
    scores = arrays(np.float32, shown.shape, elements=st.floats(0.0, 1.0, width=32))
    column = arrays(np.float32, n_rows, elements=SCALARS)
    uncertainty = {event.column: draw(column) for event in served.events}
    return served, HeadOutputs(shown, draw(scores), uncertainty)


def part(outputs, rows):
    return HeadOutputs(
        outputs.top_classes[rows],
        outputs.top_scores[rows],
        {name: values[rows] for name, values in outputs.uncertainty.items()},
    )


def matrix(outputs):
    """Return the outputs as a child sends them."""
    columns = [values[:, None] for values in outputs.uncertainty.values()]
    words = np.hstack([outputs.top_classes, outputs.top_scores, *columns]).astype(np.float32)
    n_top = outputs.top_classes.shape[1]
    places = {name: place for place, name in enumerate(outputs.uncertainty, 2 * n_top)}
    return OutputMatrix(words, n_top, places)


@st.composite
def parts_of_runs(draw):
    """All rows of a run, some of them in a row, and the answers to those alone."""
    served, outputs = draw(runs())
    n_rows = len(outputs.top_classes)
    start = draw(st.integers(0, n_rows - 1))
    stop = draw(st.integers(start + 1, n_rows))
    chosen = part(outputs, slice(start, stop))
    alone = answers_of(served, chosen, chosen.uncertainty)
    found = matrix(outputs)
    if draw(st.booleans()):
        found.numbers = None  # as of many rows
    return BatchAnswers(served, found), start, stop, alone


@given(parts_of_runs())
def test_json_is_that_of_the_rows_alone(cut):
    rows, start, stop, alone = cut
    assert rows.write("json", start, stop, None).body == plain_json(alone)


@given(parts_of_runs())
def test_an_archive_holds_the_arrays_of_the_rows_alone(cut):
    rows, start, stop, alone = cut
    expected = plain_arrays(alone)
    with np.load(BytesIO(rows.write("npz", start, stop, None).body), allow_pickle=False) as found:
        assert list(found) == list(expected)
        for name, array in expected.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)


@given(parts_of_runs(), st.data())
def test_tensors_are_those_of_the_rows_alone(cut, data):
    rows, start, stop, alone = cut
    named = st.tuples(st.sampled_from(list(plain_arrays(alone))), st.booleans())
    outputs = data.draw(st.none() | st.lists(named, unique_by=lambda output: output[0]))
    wanted = RequestedOutputs(data.draw(st.none() | LABELS), data.draw(st.booleans()), outputs)
    found = rows.write("oip", start, stop, wanted)
    assert (found.body, found.header_length) == plain_oip(alone, wanted)


@given(parts_of_runs())
def test_an_output_that_there_is_not_is_refused_by_name(cut):
    rows, start, stop, alone = cut
    with pytest.raises(InvalidInput) as caught:
        rows.write(
            "oip", start, stop, RequestedOutputs(outputs=[("class", False), ("logits", False)])
        )
    violation = caught.value.violations[0]
    assert violation.location == "outputs.logits"
    assert violation.message.endswith(f"there are {', '.join(plain_arrays(alone))}")


def samples(counts) -> dict:
    return {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in counts.collect()
        for sample in family.samples
    }


def counted(rows, form, start, stop) -> dict:
    counts = AnswerCounts()
    rows.write(form, start, stop, None)
    rows.record_metrics(counts, start, stop)
    return samples(counts)


@given(parts_of_runs())
def test_rows_are_counted_alike_in_each_form(cut):
    rows, start, stop, alone = cut
    counts = AnswerCounts()
    alone.record_metrics(counts, slice(None))
    expected = samples(counts)
    for form in ("json", "oip", "npz"):
        assert counted(rows, form, start, stop) == expected
