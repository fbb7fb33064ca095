"""How a child divides its runs among requests, and what one request may cost the others."""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from graph_models import passthrough, steps
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto
from runner_models import (
    N_FEATURES,
    PASSES_FOLDER,
    digits_model,
    linear,
    mean_of_vectors,
    of_rows,
    rows,
    save,
    undefined_below_zero,
)
from runner_models import weights as random_weights
from running_service import npy
from served_requests import AskedQueue, infer_body, json_body, load_here

from howsure.bins_document.pass_plan import PassPlan
from service.child.onnx import loaded_model
from service.child.onnx.batches import batch_rows
from service.child.onnx.session import CUDA
from service.child.requests.media_types import JSON
from service.errors import InvalidInput, MalformedRequest, TooLarge
from service.runner.messages.onnx_models import least_and_most

TRIAL = rows(20)


def picky():
    """Fails as a whole where a row's first feature is no index of the table."""
    index = f"a = Gather<axis = 1>(x, first); index = Cast<to = {TensorProto.INT64}>(a)"
    text = f"{index}; b = Gather<axis = 0>(table, index); z = MatMul(x, w); y = Add(z, b)"
    return of_rows(*steps(text), w=random_weights(), first=0, table=np.zeros((100, 10)))


def undefined():
    return undefined_below_zero(random_weights())


@pytest.fixture(scope="module", params=[None, ("entropy", "neg_log_topk_mass_5")])
def loaded(tmp_path_factory, request):
    """Load models once for the tests of this file: with all uncertainties, and with some."""
    folder, kept = tmp_path_factory.mktemp("models"), {}

    def load(make, trial=TRIAL):
        if make not in kept:
            files = save(folder, make(), name=f"{make.__name__}.onnx")
            kept[make] = load_here(files, {"x": trial}, columns=request.param)
        return kept[make]

    return load


def alone(model, array, name="x"):
    """Return the answers to rows, each of which is asked alone."""
    answers = [model.matrix({name: row[None]}, location="inputs", start=0) for row in array]
    return [model.spec.read_words(words).outputs for words in answers]


def assert_same(outputs, answers):
    """Compare rows of a batch with the same rows asked alone."""
    assert len(outputs.top_classes) == len(answers)
    for row, answer in enumerate(answers):
        np.testing.assert_array_equal(outputs.top_classes[row], answer.top_classes[0])
        scores = answer.top_scores[0]
        np.testing.assert_allclose(outputs.top_scores[row], scores, rtol=1e-5, atol=1e-7)
        for name, column in outputs.uncertainty.items():
            expected = answer.uncertainty[name][0]
            np.testing.assert_allclose(column[row], expected, rtol=1e-4, atol=1e-6)


@given(data=st.data())
def test_rows_of_any_sizes_come_back_whole_and_once(loaded, data):
    model = loaded(mean_of_vectors, TRIAL[:, None])
    run_rows = data.draw(st.integers(1, 12))
    queue = AskedQueue(model, run_rows=run_rows)
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    sent, dropped = {}, set()
    for _ in range(data.draw(st.integers(1, 4))):
        shapes = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 2)), max_size=5)
        for n_rows, length in data.draw(shapes):
            array = generator.normal(size=(n_rows, length, N_FEATURES)).astype(np.float32)
            sent[queue.put_rows(x=array)] = array
        gone = data.draw(st.sets(st.sampled_from(sorted(queue.sent)))) if queue.sent else set()
        dropped |= gone
        queue.exchange(sorted(gone))
    queue.all()
    assert max(queue.runs) <= run_rows
    assert not queue.refusals
    assert queue.answers.keys() == sent.keys() - (dropped - queue.answers.keys())
    assert not queue.answers.keys() & dropped
    for number, outputs in queue.answers.items():
        assert_same(outputs, alone(model, sent[number]))


def test_a_small_request_passes_beside_a_large_one(loaded):
    queue = AskedQueue(loaded(linear))
    large = queue.put_rows(x=rows(100))
    assert queue.exchange() == set()
    while large in queue.sent:
        small = queue.put_rows(x=rows(1))
        assert small in queue.exchange()
    assert len(queue.answers[large].top_classes) == 100
    # No run was left half empty.
    assert queue.runs[:-1] == [8] * (len(queue.runs) - 1)


def test_requests_of_other_shapes_take_turns(loaded):
    queue = AskedQueue(loaded(mean_of_vectors, TRIAL[:, None]))
    large = queue.put_rows(x=np.ones((100, 1, N_FEATURES), np.float32))
    queue.exchange()
    other = queue.put_rows(x=np.ones((3, 2, N_FEATURES), np.float32))
    assert [queue.exchange(), queue.exchange()] == [set(), {other}]
    assert large in queue.sent
    assert queue.exchange([large]) == set()  # a dropped request is not run
    assert queue.runs[-1] == 0


GOOD = np.abs(rows(200))


def changed(n_rows, row, column, number):
    """Return good rows, one of which is not."""
    array = GOOD[:n_rows].copy()
    array[row, column] = number
    return array


WIDE = np.arange(40, dtype=np.float32).reshape(2, 20)
# A model, rows that it does not answer, where its error is, and what that names.
WRONG = {
    "a run stops": (picky, changed(5, 3, 0, 1e6), "inputs", "Gather"),
    "no finite answer": (undefined, changed(40, 33, 0, -1), "inputs[33]", "finite"),
    "not finite": (linear, changed(3, 2, 4, np.inf), "inputs[2][4]", "inf"),
    "not finite in a later run": (linear, changed(200, 170, 4, np.nan), "inputs[170][4]", "NaN"),
    "more classes": (passthrough, WIDE, "", "6 classes"),
}


@pytest.mark.parametrize("n_wrong", [1, 7])
@pytest.mark.parametrize("case", WRONG)
def test_wrong_rows_fail_no_other_request_and_are_named(loaded, case, n_wrong):
    make, wrong, location, named = WRONG[case]
    model = loaded(make, GOOD[:20])
    queue = AskedQueue(model, run_rows=64)
    if n_wrong > 1:  # the same JSON before other bytes is read by a known layout
        for known in (np.ones_like(wrong), GOOD[:5]):
            queue.put_rows(x=known)
        queue.all()
    numbers = [queue.put_rows(x=wrong if n < n_wrong else GOOD[:5]) for n in range(8)]
    queue.all()
    assert queue.refusals.keys() == set(numbers[:n_wrong])
    for error in (queue.refusals[number] for number in numbers[:n_wrong]):
        assert type(error) is InvalidInput
        assert named in error.message
        assert error.violations[0].location.startswith(location)
    for number in numbers[n_wrong:]:
        assert_same(queue.answers[number], alone(model, GOOD[:5]))


def test_a_model_of_a_fixed_batch_answers_each_request(tmp_path):
    model = load_here(save(tmp_path, linear(batch=4)), {"x": TRIAL})
    queue = AskedQueue(model)
    numbers = {queue.put_rows(x=rows(n)): n for n in (1, 3, 9, 2)}
    for number, outputs in queue.all().items():
        assert_same(outputs, alone(model, rows(numbers.pop(number))))
    assert not numbers


BAD_BODIES = [
    (b"{", JSON, None, MalformedRequest, "body"),
    (json_body(rows(1), calibration="another"), JSON, None, InvalidInput, "one name"),
    (json_body(rows(2), supplied={"own": [1.0]}), JSON, None, InvalidInput, "no event is"),
    (infer_body({"x": rows(1001)})[0], "oip", "7", InvalidInput, ""),
    (json_body(rows(1001)), JSON, None, TooLarge, "1000 rows"),
]


@pytest.mark.parametrize(("body", "media_type", "length", "kind", "words"), BAD_BODIES)
def test_an_invalid_body_fails_alone(loaded, body, media_type, length, kind, words):
    queue = AskedQueue(loaded(linear))
    wrong = queue.put(body, media_type, header_length=length)
    good = [queue.put_rows(x=rows(1)), queue.put_rows(x=rows(2))]
    queue.all()
    assert queue.answers.keys() == set(good)
    assert isinstance(queue.refusals[wrong], kind)
    assert words in queue.refusals[wrong].message


DIGITS = np.load(PASSES_FOLDER / "digits_passes.npz")["evaluation_inputs"][:40]


@pytest.fixture(
    scope="module",
    params=[
        (["hidden_dropout_cnn"], PassPlan("dropout_variance", 5, 0)),
        (["last_layer_dropout_cnn"], PassPlan("last_layer_dropout_variance", 5, 0)),
        (["small_cnn"], PassPlan("gradient_norm", 4, 0, step=1e-3)),
        (["member_0", "member_1", "member_2"], PassPlan("ensemble_variance", 5, 0)),
    ],
    ids=lambda case: case[1].measure,
)
def of_passes(request):
    names, plan = request.param
    return load_here(digits_model(*names), {"inputs": DIGITS}, passes=[plan])


def test_rows_are_answered_with_passes_as_all_together_and_bad_ones_fail_alone(of_passes):
    queue, name = AskedQueue(of_passes, run_rows=16), of_passes.description.inputs[0].name
    parts = [slice(*cut) for cut in pairwise([0, 1, 4, 24, 30, 40])]
    numbers = [queue.put_rows(**{name: DIGITS[part]}) for part in parts]
    bad = DIGITS[:3].copy()
    bad[1] = np.where(np.arange(bad[1].size).reshape(bad[1].shape) % 2, 3e38, -3e38)
    wrong = queue.put_rows(**{name: bad})
    queue.all()
    assert queue.refusals[wrong].violations[0].location == "inputs[1]"
    options = {"location": "inputs", "start": 0}
    feeds = of_passes.inputs.fitted({"inputs": DIGITS}, **options)
    whole = of_passes.answer(feeds, **options)
    for number, part in zip(numbers, parts, strict=True):
        outputs = queue.answers[number]
        np.testing.assert_array_equal(outputs.top_classes, whole["howsure_top_classes"][part])
        for column, values in outputs.uncertainty.items():
            expected = whole[f"howsure_{column}"][part]
            np.testing.assert_allclose(values, expected, rtol=2e-3, atol=1e-6, err_msg=column)


def test_a_body_that_takes_long_to_read_fails_alone_and_the_next_ones_wait(loaded, monkeypatch):
    queue, clock = AskedQueue(loaded(linear)), [0.0]
    seconds = {queue.put_rows(x=rows(n)): taken for n, taken in ((1, 0.0), (2, 16.0), (3, 0.0))}
    decode = queue.queue._decoder.decode

    def slow(sent, body, limits):
        clock[0] += seconds[sent.number]
        return decode(sent, body, limits)

    monkeypatch.setattr(queue.queue._decoder, "decode", slow)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    quick, late, last = seconds
    assert queue.exchange() == {quick, late}  # half of the 30 seconds of a run are over
    assert type(queue.refusals[late]) is TooLarge
    assert queue.exchange() == {last}


def test_bodies_wait_while_others_have_as_many_bytes_as_one_may(loaded):
    queue = AskedQueue(loaded(linear), max_bytes=3000)
    sent = {queue.put_rows(x=rows(n)) for n in (101, 102, 103)}
    assert queue.exchange() == set()
    assert len(queue.queue._unread) == 1
    assert queue.all().keys() == sent


def test_a_large_run_on_a_gpu_that_fails_is_divided(loaded, monkeypatch):
    model = loaded(linear)
    sizes, run_all = [], model.answering.session.run_all

    def small_memory(outputs, feeds, *, place):
        sizes.append(len(feeds["x"]))
        if sizes[-1] > 32:
            raise InvalidInput.at(place, "too much", rule="too_much_memory")
        return run_all(outputs, feeds, place=place)

    monkeypatch.setattr(model.answering.session, "run_all", small_memory)
    monkeypatch.setattr(loaded_model, "MAX_BATCH_INPUT_BYTES", 32 * 4 * N_FEATURES)
    monkeypatch.setattr(batch_rows, "__kwdefaults__", {"most_bytes": 32 * 4 * N_FEATURES})
    on_gpu = replace(model, found=replace(model.found, provider=CUDA))
    feeds = {"x": rows(64)}
    expected = model.matrix(feeds, location="inputs", start=0)
    np.testing.assert_array_equal(on_gpu.matrix(feeds, location="inputs", start=0), expected)
    assert sizes == [32, 32, *[64] * model.answering.is_packed, 32, 32]


@pytest.mark.parametrize("sizes", [[9000], [9000, 9000, 9000], [20, 9000], [5, 5]])
def test_requests_that_wait_keep_little_more_than_their_rows(loaded, sizes):
    queue = AskedQueue(loaded(linear), run_rows=1000, max_rows=10_000)
    sent = {queue.put(npy(rows(n))): n for n in sizes}
    queue.exchange()
    for waiting in queue.queue._waiting.values():
        array = memory = waiting.decoded.rows["x"]
        while isinstance(memory, np.ndarray):
            memory = memory.base
        assert len(memory) < 2 * array.nbytes + 1000
    queue.all()
    assert {n: len(queue.answers[n].top_classes) for n in sent} == sent


@pytest.mark.parametrize("run_rows", [20_000, 60_000])
def test_extents_of_a_large_request_are_those_of_its_rows(tmp_path, run_rows):
    files = save(tmp_path, linear(), name="linear.onnx")
    model = load_here(files, {"x": TRIAL}, columns=("entropy", *least_and_most("x")))
    queue = AskedQueue(model, run_rows=run_rows, max_rows=60_000)
    sent, beside = rows(50_000), rows(100)
    numbers = [queue.put(npy(array)) for array in (sent, beside)]
    queue.all()
    for number, array in zip(numbers, (sent, beside), strict=True):
        found = queue.answers[number].uncertainty
        ends = [found[name] for name in least_and_most("x")]
        np.testing.assert_array_equal(ends, [array.min(axis=1), array.max(axis=1)])
