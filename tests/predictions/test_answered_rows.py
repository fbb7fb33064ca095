"""Answers cut from a run equal answers made for those rows alone."""

import asyncio
import uuid
from io import BytesIO
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from plain_answers import plain_arrays, plain_json, plain_oip

from howsure.statistics.bins.curve import Curve
from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from howsure.statistics.learned.model import LearnedModel
from service.metrics.answers import AnswerCounts
from service.predictions.answer_writer import MOST_ROWS_AT_ONCE, AnswerWriter, BatchAnswers
from service.predictions.lookup import answers_of
from service.predictions.oip_statistics import Statistics
from service.predictions.prediction_request import PredictionOptions, PredictionRequest
from service.predictions.served_calibration import ServedCalibration, ServedEvent
from service.runner.messages.open_inference import RequestedOutputs
from service.runner.model_output import HeadOutputs, OutputMatrix
from service.runner.predict_requests import Answer
from service.storage.calibration_queries import CalibrationRef

LABELS = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\%b,[]{}'), min_size=1
)
SCALARS = st.floats(-8.0, 8.0, width=32)
SHARES = st.floats(0.0, 1.0)
# Of the learned measure; below -85 the other classes have no mass.
INPUTS = st.floats(-90.0, 8.0, width=32)


@st.composite
def curves(draw):
    knots = draw(st.sets(SCALARS, min_size=1, max_size=4))
    shares = arrays(np.float64, (3, len(knots)), elements=SHARES)
    lower, probability, upper = np.sort(draw(shares), 0)
    return Curve(uncertainty=sorted(knots), probability=probability, lower=lower, upper=upper)


@st.composite
def formulas(draw, k, n_classes):
    number = st.floats(-3.0, 3.0)
    by_input, by_class = (arrays(np.float64, n, elements=number) for n in (4, n_classes))
    lower, upper = np.sort(draw(arrays(np.float64, (2, 4), elements=INPUTS)), 0)
    by_name = {name: draw(by_input) for name in ("linear", "square")}
    by_name |= {name: draw(by_class) for name in ("offset", "slope", "second")}
    return LearnedModel(
        k=k,
        temperature=draw(st.integers(0, 23)),
        intercept=draw(number),
        saturated=draw(number),
        lower=lower,
        upper=upper,
        **by_name,
    )


@st.composite
def tables(draw):
    n_bins = draw(st.integers(1, 4))
    between = sorted(draw(st.sets(SCALARS, min_size=n_bins - 1, max_size=n_bins - 1)))
    means = sorted(draw(st.sets(SCALARS, min_size=n_bins, max_size=n_bins)))
    lower, probability, upper = np.sort(draw(arrays(np.float64, (3, n_bins), elements=SHARES)), 0)
    lookup = draw(st.sampled_from(["smooth", "interpolated", "step"]))
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
        lookup=lookup,
        curve=draw(curves()) if lookup == "smooth" else None,
    )


MEASURES = ("learned", "entropy", 'output:"%b"', "supplied:schärfe")


@st.composite
def events_of(draw, k, n_classes, measures):
    measure = draw(st.sampled_from(measures))
    learned = draw(formulas(k, n_classes)) if measure == "learned" else None
    return ServedEvent(k, measure, f"column_{k}", draw(tables()), learned)


@st.composite
def calibrations(draw, measures=MEASURES):
    names = draw(st.lists(LABELS, min_size=2, max_size=8))
    top_k = draw(st.sets(st.integers(1, len(names) - 1), min_size=1, max_size=2))
    bounds = st.none() | SCALARS
    events = [draw(events_of(k, len(names), measures)) for k in sorted(top_k)]
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
def runs(draw, measures=MEASURES):
    """A calibration with what its model gave for a few rows."""
    served = draw(calibrations(measures))
    n_classes, n_rows = len(served.class_names), draw(st.integers(1, 5))
    ranked = st.permutations(range(n_classes)).map(lambda order: order[: max(5, *served.top_k, 5)])
    shown = np.array(draw(st.lists(ranked, min_size=n_rows, max_size=n_rows)), np.int64)
    scores = arrays(np.float32, shown.shape, elements=st.floats(0.0, 1.0, width=32))
    column, inputs = (arrays(np.float32, n_rows, elements=e) for e in (SCALARS, INPUTS))
    uncertainty = {
        name: draw(column if event.learned is None else inputs)
        for event in served.events
        for name in event.needs
    }
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
    found = matrix(outputs)
    if draw(st.booleans()):
        found.numbers = None  # as of many rows
    return BatchAnswers(served, found), start, stop, answers_alone(served, outputs, start, stop)


def answers_alone(served, outputs, start, stop):
    chosen = part(outputs, slice(start, stop))
    return answers_of(served, chosen, chosen.uncertainty)


def samples(counts) -> dict:
    return {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in counts.collect()
        for sample in family.samples
    }


def counted(alone) -> dict:
    """Return what is counted of answers."""
    counts = AnswerCounts()
    for answers in alone:
        answers.record_metrics(counts, slice(None))
    return samples(counts)


@given(parts_of_runs(), st.data())
def test_each_form_is_that_of_the_rows_alone(cut, data):
    """Also what is counted of them."""
    rows, start, stop, alone = cut

    def written(form, wanted=None, *, by_position=False):
        return rows.write(form, Answer(None, None, start, stop, wanted, {}, by_position))

    expected = plain_json(alone)
    assert written("json").body == expected
    positional = b',"columns":"positional","predictions"'
    positional = expected.replace(b',"predictions"', positional)
    assert written("json", by_position=True).body == positional
    arrays_alone = plain_arrays(alone)
    with np.load(BytesIO(written("npz").body), allow_pickle=False) as archive:
        assert list(archive) == list(arrays_alone)
        for name, array in arrays_alone.items():
            np.testing.assert_array_equal(archive[name], array, strict=True)
    named = st.tuples(st.sampled_from(list(arrays_alone)), st.booleans())
    outputs = data.draw(st.none() | st.lists(named, unique_by=lambda output: output[0]))
    wanted = RequestedOutputs(data.draw(st.none() | LABELS), data.draw(st.booleans()), outputs)
    tensors = written("oip", wanted)
    assert (tensors.body, tensors.header_length) == plain_oip(alone, wanted)
    counts = AnswerCounts()
    rows.record_metrics(counts, start, stop)
    assert samples(counts) == counted([alone])


class Asked(PredictionRequest, eq=False, kw_only=True):
    """A request that keeps how it was answered."""

    told: list

    def done(self, answer):
        self.told.append(answer.body)

    def failed(self, error):
        self.told.append(error)


def asked(served) -> Asked:
    options = PredictionOptions("application/json", None, "json", 60.0)
    nobody = {"asker": None, "tenant_id": uuid.UUID(int=1), "body": b"", "arrived": 0.0}
    return Asked(**nobody, options=options, timeout=60.0, served=served, told=[])


@st.composite
def batches(draw):
    """Answers of up to three runs, each to some of its rows, and the answers to those alone.

    Some runs have more rows than are written at once, some have rows that nobody waits for.
    """
    found = []
    # Of requests that bring their uncertainties with them, see test_mixed_clients.
    for served, few in draw(st.lists(runs(MEASURES[:3]), min_size=1, max_size=3)):
        n_few = len(few.top_classes)
        n_rows = draw(st.sampled_from([n_few, 2 * MOST_ROWS_AT_ONCE]))
        outputs = part(few, np.arange(n_rows) % n_few)
        rows = matrix(outputs)
        cuts = sorted({0, n_rows, *draw(st.lists(st.integers(0, n_rows), max_size=3))})
        waiting = draw(st.sampled_from([1, len(cuts)]))
        for start, stop in list(pairwise(cuts))[:waiting]:
            answer = Answer(asked(served), rows, start, stop, None, {})
            found.append((answer, answers_alone(served, outputs, start, stop)))
    return found


@given(batches())
def test_each_request_of_a_batch_gets_its_own_rows_and_they_are_counted_once(batch):
    requests = [answer.request for answer, _ in batch]

    async def scene():
        writer = AnswerWriter(counts, Statistics(), fail=lambda one, error: one.fail(error))
        writer.write([answer for answer, _ in batch])
        async with asyncio.timeout(10):
            while not all(request.told for request in requests):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        writer.close()

    counts = AnswerCounts()
    asyncio.run(scene())
    assert [request.told for request in requests] == [[plain_json(alone)] for _, alone in batch]
    assert samples(counts) == counted(alone for _, alone in batch)
